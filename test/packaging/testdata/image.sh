# Starts the image nameplane-test with $BUILDER in a network namespace that has only loopback.
set -eux
ip link set lo up
mkdir data
chown 65532:65532 data
container=$($BUILDER from nameplane-test)
inside() { $BUILDER run --isolation chroot --volume "$PWD/data:/data" "$container" -- "$@"; }
inside /nameplane serve --data /data --dns 127.0.0.1:5300 --http 127.0.0.1:8053 &
for i in $(seq 100); do
	inside /nameplane health && break
	test "$i" != 100
	sleep 0.1
done
inside /nameplane zone create example.org --data /data
dig +short @127.0.0.1 -p 5300 example.org SOA | grep ns1.localhost.
test "$(stat -c %u data/nameplane.db)" = 65532
pkill -TERM -x nameplane
wait
$BUILDER rm "$container"
$BUILDER rmi nameplane-test
