# Starts the image nameplane-test with $BUILDER in a network namespace that has only loopback.
set -eux
ip link set lo up
mkdir data
chown 65532:65532 data
# Two containers share the network and the data: two runs in one container that start together fail now and then, because
# both create its mount points.
server=$($BUILDER from nameplane-test)
client=$($BUILDER from nameplane-test)
inside() { $BUILDER run --isolation chroot --volume "$PWD/data:/data" "$@"; }
inside "$server" -- /nameplane serve --data /data --dns 127.0.0.1:5300 --http 127.0.0.1:8053 &
for i in $(seq 100); do
	inside "$client" -- /nameplane health && break
	test "$i" != 100
	sleep 0.1
done
inside "$client" -- /nameplane zone create example.org --data /data
dig +short @127.0.0.1 -p 5300 example.org SOA | grep ns1.localhost.
test "$(stat -c %u data/nameplane.db)" = 65532
pkill -TERM -x nameplane
wait
$BUILDER rm "$server" "$client"
$BUILDER rmi nameplane-test
