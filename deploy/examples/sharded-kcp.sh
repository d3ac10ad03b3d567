#!/usr/bin/env bash
# Starts a kcp with two shards on this machine: a cache server, the shards "root" and "two", and a
# front proxy, each with its data and log in a folder. It then prints how to start hubs in front of
# it. Production has the same processes and flags, with other certificates and host names.
#
#   deploy/examples/sharded-kcp.sh /tmp/sharded-kcp tokens.csv
#
# kcp's programs are those of a kcp release, or the one that the tests of the hub use:
#
#   make "$PWD/bin/kcpserver"
#   export KCP_SHARD="bin/kcpserver shard" KCP_CACHE="bin/kcpserver cache-server" KCP_PROXY="bin/kcpserver front-proxy"
#
# KCP_ROOT is a command that starts a root shard which has data and an etcd already, with the arguments that it gets.
# KCP_FLAGS are flags which the other shards then need besides, such as --authentication-config.
set -euo pipefail

dir=$(realpath -m "${1:?give a folder for data and certificates}")
tokens=$(realpath "${2:?give a file of static tokens, as for --token-file of the hub}")
shard=${KCP_SHARD:-kcp start} cache=${KCP_CACHE:-cache-server} proxy=${KCP_PROXY:-kcp-front-proxy}
proxy_port=6443 root_port=6444 two_port=6445 cache_port=6446
front=https://127.0.0.1:$proxy_port root=https://127.0.0.1:$root_port
mkdir -p "$dir" && chmod 700 "$dir"

# ca NAME makes a certificate authority. cert NAME CA SUBJECT [EXTENSION] makes a certificate that it signs.
ca() {
	[ -e "$dir/$1.crt" ] || openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 \
		-subj "/CN=$1" -keyout "$dir/$1.key" -out "$dir/$1.crt" 2>/dev/null
}
cert() {
	[ -e "$dir/$1.crt" ] && return
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "$3" -keyout "$dir/$1.key" -out "$dir/$1.csr" 2>/dev/null
	openssl x509 -req -days 365 -in "$dir/$1.csr" -CA "$dir/$2.crt" -CAkey "$dir/$2.key" -CAcreateserial \
		-extfile <(echo "extendedKeyUsage=serverAuth,clientAuth"; echo "${4:-}") -out "$dir/$1.crt" 2>/dev/null
}
ca serving-ca
ca client-ca
ca requestheader-ca
cert serving serving-ca /CN=kcp "subjectAltName=IP:127.0.0.1,DNS:localhost"
# The admin, with whose credential the hub works, and the identities of kcp's components.
cert kcp-admin client-ca /O=system:kcp:admin/CN=kcp-admin
cert shard-admin client-ca /O=system:masters/CN=shard-admin
cert logical-cluster-admin client-ca /O=system:kcp:logical-cluster-admin/CN=logical-cluster-admin
cert external-logical-cluster-admin client-ca /O=system:kcp:external-logical-cluster-admin/CN=external-logical-cluster-admin
cert front-proxy requestheader-ca /CN=kcp-front-proxy
# Each shard can sign tokens of ServiceAccounts with a key of its own.
ca service-account-root
ca service-account-two

# kubeconfig FILE CONTEXT SERVER CERTIFICATE [CONTEXT SERVER CERTIFICATE]: the first context is the current one.
kubeconfig() {
	local file=$dir/$1 current=$2 clusters="" users="" contexts=""
	shift
	while [ $# -gt 0 ]; do
		clusters+="- {name: $1, cluster: {server: \"$2\", certificate-authority: $dir/serving-ca.crt}}"$'\n'
		users+="- {name: $1, user: {client-certificate: $dir/$3.crt, client-key: $dir/$3.key}}"$'\n'
		contexts+="- {name: $1, context: {cluster: $1, user: $1}}"$'\n'
		shift 3
	done
	printf 'apiVersion: v1\nkind: Config\ncurrent-context: %s\nclusters:\n%susers:\n%scontexts:\n%s' "$current" "$clusters" "$users" "$contexts" > "$file"
}
kubeconfig cache.kubeconfig base https://127.0.0.1:$cache_port shard-admin
kubeconfig root-shard.kubeconfig shard-base "$root" shard-admin
kubeconfig shards.kubeconfig base "" shard-admin
kubeconfig logical-cluster-admin.kubeconfig base "$root" logical-cluster-admin
kubeconfig external-logical-cluster-admin.kubeconfig base "$front" external-logical-cluster-admin
# For the hub: the front proxy, and a shard, from which it takes the credential for all shards.
kubeconfig admin.kubeconfig base "$front" kcp-admin shard-base "$root" shard-admin
cat > "$dir/mapping.yaml" <<YAML
- path: /clusters/
  backend: $root
  backend_server_ca: $dir/serving-ca.crt
  proxy_client_cert: $dir/front-proxy.crt
  proxy_client_key: $dir/front-proxy.key
YAML

# start NAME PORT COMMAND FLAGS starts a component.
start() {
	local name=$1 port=$2 command=$3
	shift 3
	# shellcheck disable=SC2086 # a command may have an argument
	$command --bind-address=127.0.0.1 --secure-port="$port" \
		--tls-cert-file="$dir/serving.crt" --tls-private-key-file="$dir/serving.key" --client-ca-file="$dir/client-ca.crt" \
		"$@" > "$dir/$name.log" 2>&1 &
	echo "$!" > "$dir/$name.pid"
}
headers=(
	--requestheader-client-ca-file="$dir/requestheader-ca.crt" --requestheader-allowed-names=kcp-front-proxy
	--requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group
	--requestheader-extra-headers-prefix=X-Remote-Extra-
)
# await PORT... waits until the components at these ports are ready.
await() {
	local port pid
	for port in "$@"; do
		until curl -sf --cacert "$dir/serving-ca.crt" --cert "$dir/shard-admin.crt" --key "$dir/shard-admin.key" "https://127.0.0.1:$port/readyz" > /dev/null; do
			for pid in "$dir"/*.pid; do
				kill -0 "$(cat "$pid")" 2>/dev/null || { echo "$(basename "$pid" .pid) has ended; see ${pid%.pid}.log" >&2; exit 1; }
			done
			sleep 1
		done
	done
}
# among NAME PORT sets flags to those that make a shard one of several.
among() {
	flags=(
		"${headers[@]}"
		--shard-name="$1" --shard-base-url="https://127.0.0.1:$2" --shard-virtual-workspace-url="https://127.0.0.1:$2"
		--shard-external-url="$front" --shard-virtual-workspace-ca-file="$dir/serving-ca.crt"
		--shard-client-cert-file="$dir/shard-admin.crt" --shard-client-key-file="$dir/shard-admin.key"
		--logical-cluster-admin-kubeconfig="$dir/logical-cluster-admin.kubeconfig"
		--external-logical-cluster-admin-kubeconfig="$dir/external-logical-cluster-admin.kubeconfig"
		--cache-kubeconfig="$dir/cache.kubeconfig"
	)
}
# start_shard NAME PORT ETCD-CLIENT-PORT ETCD-PEER-PORT [FLAGS] starts a shard with data of its own.
start_shard() {
	local name=$1 port=$2 client=$3 peer=$4
	shift 4
	among "$name" "$port"
	# shellcheck disable=SC2086 # there can be several flags
	start "$name" "$port" "$shard" "${flags[@]}" --root-directory="$dir/$name" \
		--embedded-etcd-client-port="$client" --embedded-etcd-peer-port="$peer" \
		--service-account-key-file="$dir/service-account-$name.crt" --service-account-private-key-file="$dir/service-account-$name.key" \
		--service-account-signing-key-file="$dir/service-account-$name.key" --token-auth-file="$tokens" \
		--api-audiences=https://kcp.default.svc,kedge --enable-home-workspaces=false --batteries-included= --profiling=false \
		${KCP_FLAGS:-} "$@"
}

start cache-server $cache_port "$cache" --root-directory="$dir/cache-server" --embedded-etcd-client-port=2391 --embedded-etcd-peer-port=2392
if [ -n "${KCP_ROOT:-}" ]; then
	among root $root_port
	start root $root_port "$KCP_ROOT" "${flags[@]}"
	# A front proxy of kcp 0.32 loses a shard whose URL changes while it runs.
	await $root_port
else
	start_shard root $root_port 2379 2380
fi
start_shard two $two_port 2381 2382 --root-shard-kubeconfig-file="$dir/root-shard.kubeconfig"
start front-proxy $proxy_port "$proxy" "${headers[@]}" --root-directory="$dir/front-proxy" \
	--mapping-file="$dir/mapping.yaml" --root-kubeconfig="$dir/root-shard.kubeconfig" --shards-kubeconfig="$dir/shards.kubeconfig"

await $cache_port $root_port $two_port $proxy_port
cat <<TEXT
kcp is ready at $front. Start hubs in front of it:

  kedge-hub --kcp-kubeconfig $dir/admin.kubeconfig --token-file $tokens --data-dir hub-1 --listen-address 127.0.0.1:9443
  kedge-hub --kcp-kubeconfig $dir/admin.kubeconfig --token-file $tokens --data-dir hub-2 --listen-address 127.0.0.1:9444 --metrics-listen-address 127.0.0.1:9091

Put new workspaces on the second shard, or stop it:

  kubectl --kubeconfig $dir/admin.kubeconfig --server $front/clusters/root annotate shards.core.kcp.io root experimental.core.kcp.io/unschedulable=true
  kill \$(cat $dir/two.pid)

Stop everything: kill \$(cat $dir/*.pid)
TEXT
