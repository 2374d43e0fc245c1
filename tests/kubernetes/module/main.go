// The parts of a Kubernetes cluster in one executable; the name that starts it says which part.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"

	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"

	"github.com/coredns/coredns/coremain"
	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	"k8s.io/kubernetes/pkg/kubelet/network/dns"
)

func main() {
	commands := map[string]func() *cobra.Command{
		"kube-apiserver":          func() *cobra.Command { return apiserver.NewAPIServerCommand() },
		"kube-controller-manager": manager.NewControllerManagerCommand,
		"kube-proxy":              proxy.NewProxyCommand,
	}
	switch name := filepath.Base(os.Args[0]); name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "coredns":
		coremain.Run()
	case "pod-dns":
		if err := podDNS(os.Args[1], os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		command, known := commands[name]
		if !known {
			fmt.Fprintln(os.Stderr, "no part of a cluster is called", name)
			os.Exit(2)
		}
		os.Exit(cli.Run(command()))
	}
}

// podDNS reads a pod as JSON and prints what the kubelet writes into its resolv.conf, as JSON.
func podDNS(server, ofNode string) error {
	var pod corev1.Pod
	if err := json.NewDecoder(os.Stdin).Decode(&pod); err != nil {
		return err
	}
	recorder := record.NewFakeRecorder(16)
	node := &corev1.ObjectReference{Kind: "Node", Name: pod.Spec.NodeName}
	configurer := dns.NewConfigurer(
		recorder, node, nil, []net.IP{net.ParseIP(server)}, "cluster.local", ofNode)
	found, err := configurer.GetPodDNS(context.Background(), &pod)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}
