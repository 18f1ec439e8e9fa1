// Enforces NetworkPolicies on one node of the test cluster: the controller of kube-network-policies, which judges the
// first packet of each connection that the kernel keeps waiting for it. Its own program knows a cluster only from inside
// a pod, and makes the packets wait by an expression of nftables that many kernels lack; here a rule of iptables does
// that (tools/cluster/node). The controller still tries to put its table, logs that it can't and goes on; where it can, a
// packet is judged twice, alike.
package main

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/kube-network-policies/pkg/networkpolicy"
)

// Until the process is asked to end.
func enforce(kubeconfig, node string, queue int) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	// No policies of administrators. NRI stays on, although this runtime has none: without it the controller dies of the first
	// address that is no pod's.
	controller, err := networkpolicy.NewController(client, factory.Networking().V1().NetworkPolicies(),
		factory.Core().V1().Namespaces(), factory.Core().V1().Pods(), nil, nil, nil, nil,
		networkpolicy.Config{NodeName: node, QueueID: queue})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	factory.Start(ctx.Done())
	return controller.Run(ctx)
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	node := flag.String("node", "", "the node whose connections are judged")
	queue := flag.Int("queue", 0, "the number of the kernel's queue of packets")
	flag.Parse()
	if err := enforce(*kubeconfig, *node, *queue); err != nil {
		klog.Fatal(err)
	}
}
