# shellcheck shell=bash disable=SC2154
# The files that the programs of the test cluster read: certificates, kubeconfigs, and each node's own. Sourced by
# `cluster`, which sets the folders and addresses used here.

signed() {  # NAME SUBJECT EXTENSION
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$pki/$1.key" -subj "$2" 2>/dev/null |
    openssl x509 -req -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -CAcreateserial -out "$pki/$1.crt" -days 365 \
      -extfile <(printf '%s' "$3") 2>/dev/null
}
client() {  # NAME SUBJECT: a certificate and a kubeconfig
  signed "$1" "$2" extendedKeyUsage=clientAuth
  cat >"$pki/$1.conf" <<YAML
apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "https://$control:6443", certificate-authority: "$pki/ca.crt"}}]
users: [{name: user, user: {client-certificate: "$pki/$1.crt", client-key: "$pki/$1.key"}}]
contexts: [{name: test, context: {cluster: test, user: user}}]
current-context: test
YAML
}
certificates() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$pki/ca.key" -out "$pki/ca.crt" \
    -days 365 -subj /CN=trainingjob-test-ca 2>/dev/null
  openssl genrsa -out "$pki/sa.key" 2048 2>/dev/null
  openssl rsa -in "$pki/sa.key" -pubout -out "$pki/sa.pub" 2>/dev/null
  signed apiserver /CN=kube-apiserver "subjectAltName=IP:$control,IP:10.96.0.1,IP:127.0.0.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc"
  client admin /O=system:masters/CN=admin
  client controllers /CN=system:kube-controller-manager
  client scheduler /CN=system:kube-scheduler
  client proxy /CN=system:kube-proxy
  local i
  for i in $(seq "$(node_count)"); do client "n$i" "/O=system:nodes/CN=system:node:n$i"; done
}

node_files() {
  local i=$1 disk=$state/n$1
  mkdir -p "$disk/cni" "$disk/registry/docker.io"
  cat >"$disk/cni/10.conflist" <<JSON
{"cniVersion": "0.4.0", "name": "tj", "plugins": [{"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
 "ipam": {"type": "host-local", "dataDir": "/run/ipam", "ranges": [[{"subnet": "10.78.$i.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
JSON
  cat >"$disk/registry/docker.io/hosts.toml" <<TOML
server = "http://$control:$registry_port"
[host."http://$control:$registry_port"]
  capabilities = ["pull", "resolve"]
TOML
  cat >"$disk/containerd.toml" <<TOML
version = 2
root = "$disk/containerd"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/trainingjob-test/pause:1"
  restrict_oom_score_adj = true   # else runc dies with "can't get final child's PID from pipe" where CAP_SYS_RESOURCE is missing
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "$disk/registry"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$disk/cni"
TOML
  printf 'nameserver %s\n' $control >"$disk/resolv.conf"
  cat >"$disk/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /tj-n$i
enforceNodeAllocatable: []
failSwapOn: false
clusterDNS: [$control]
clusterDomain: cluster.local
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
volumePluginDir: /var/lib/kubelet/volume-plugins
resolvConf: $disk/resolv.conf
authentication: {anonymous: {enabled: false}, x509: {clientCAFile: $pki/ca.crt}, webhook: {enabled: true}}
authorization: {mode: AlwaysAllow}
evictionHard: {imagefs.available: 256Mi, nodefs.available: 256Mi}
imageGCHighThresholdPercent: 100
nodeStatusUpdateFrequency: 4s
maxPods: 250
YAML
}
