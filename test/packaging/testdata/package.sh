# Installs, uses and purges the Debian package in a system without init. The working directory is its root directory.
set -eux
ip link set lo up
mount -t proc proc proc
mkdir -p dev
mount -t tmpfs tmpfs dev
for device in null urandom random; do
	touch dev/$device
	mount --bind /dev/$device dev/$device
done
inside() { PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot . "$@"; }

inside dpkg -i /nameplane.deb
test -s usr/share/man/man1/nameplane-zone-create.1.gz
test "$(stat -c %u:%a var/lib/nameplane)" = "$(inside id -u nameplane):700"

# shellcheck disable=SC2046
chroot . $(sed -n 's/^ExecStart=//p' usr/lib/systemd/system/nameplane.service) &
server=$!
for i in $(seq 100); do
	inside nameplane zone list --data /var/lib/nameplane && break
	test "$i" != 100
	sleep 0.1
done
inside nameplane zone create example.org --data /var/lib/nameplane
inside nameplane record set example.org www A 192.0.2.1 --data /var/lib/nameplane
test "$(dig +short @127.0.0.1 www.example.org A)" = 192.0.2.1
test "$(dig +short @::1 www.example.org A)" = 192.0.2.1
dig +short @127.0.0.1 example.org NS
kill $server
wait $server

inside dpkg -r nameplane
test ! -e usr/bin/nameplane
test -s var/lib/nameplane/nameplane.db # a removal keeps the zones
inside dpkg -P nameplane
test ! -e var/lib/nameplane
test ! -e etc/nameplane
! inside id nameplane
echo purged
