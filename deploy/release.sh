#!/usr/bin/env bash
# Writes the files of a release into dist: for each architecture an archive of all programs with their license, and a
# Debian package; for each program a bill of materials; and the checksums of all of them.
set -eu
cd "$(dirname "$0")/.."
export GOFLAGS=-buildvcs=true # fail without the commit and the tag, which the programs print
version=$(git describe --tags 2>/dev/null | sed 's/^v//')
version=${version:-0.0.0~$(git rev-parse --short HEAD)} # without a tag; the version of a Debian package begins with a digit
rm -rf dist
for arch in amd64 arm64; do
	make cross GOARCH=$arch
	tar -czf "dist/nameplane_${version}_linux_$arch.tar.gz" LICENSE CHANGELOG.md -C dist/$arch .
done
make nameplane
for arch in amd64 arm64; do
	deploy/debian/build.sh "$version" dist/$arch/nameplane $arch
done
for program in dist/amd64/*; do
	.cache/bin/cyclonedx-gomod bin -json -output "dist/$(basename "$program").cdx.json" "$program"
done
rm -r dist/amd64 dist/arm64
(cd dist && sha256sum -- * >SHA256SUMS)
