#!/usr/bin/env bash
# Install the real peers of tests/peers: nginx and tinyproxy from the distribution, and LiteLLM's
# proxy, llmock and the official SDKs in a virtual environment of their own.
#
#   tests/peers/install.sh FOLDER
#   K3CHECK_PEERS_VENV=FOLDER python -m pytest tests/peers
set -euo pipefail
folder=${1:?"usage: install.sh FOLDER"}
here=$(cd "$(dirname "$0")" && pwd)

missing=()
[ -x "$(command -v nginx || echo /usr/sbin/nginx)" ] || missing+=(nginx-light)
[ -x "$(command -v tinyproxy || echo /usr/bin/tinyproxy)" ] || missing+=(tinyproxy-bin)
if [ ${#missing[@]} -gt 0 ]; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}"
fi

[ -x "$folder/bin/python" ] || "${PYTHON:-python3}" -m venv "$folder"
# An environment of its own: nothing of the caller's may be taken for granted.
"$folder/bin/python" -m pip install -q -r "$here/requirements.txt" -c "$here/constraints.txt"
