#!/usr/bin/env bash
# Writes a Debian package of the nameplane program into dist: build.sh [VERSION [PROGRAM ARCH]]
set -eu
cd "$(dirname "$0")/../.."
export VERSION=${1:-0.1.0~dev} PROGRAM=${2:-bin/nameplane} ARCH=${3:-$(go env GOARCH)}
export STAGE=dist/stage
mkdir -p $STAGE/man
# Completions do not depend on the architecture, so the program of this machine writes them.
bin/nameplane completion bash >$STAGE/nameplane.bash
bin/nameplane completion zsh >$STAGE/nameplane.zsh
for page in docs/man/*.1; do
	case $page in
	*/nameplane-egress*) ;; # pages of another program
	*) gzip -9 -n -c "$page" >"$STAGE/man/$(basename "$page").gz" ;;
	esac
done
.cache/bin/nfpm package --config deploy/debian/nfpm.yaml --packager deb --target dist/
rm -r $STAGE
