// Copyright 2026 The llm_gateway Authors
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

// Command bench measures what the gateway costs beside a plain reverse_proxy:
// CPU time per request of one Caddy process that serves both, in turns, against
// one upstream on the loopback.
//
//	go run ./bench
//
// The rounds are short and interleaved, so that what else the machine does weighs
// on both alike, and the ratio is taken within each round.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	log.SetFlags(0)
	var o options
	flag.StringVar(&o.caddy, "caddy", "", "the Caddy to measure (default: built from this tree)")
	flag.IntVar(&o.rounds, "rounds", 100, "rounds; each measures both sites")
	flag.IntVar(&o.requests, "requests", 400, "requests a round and site")
	flag.IntVar(&o.conns, "conns", 16, "connections at once")
	flag.IntVar(&o.size, "size", 1024, "bytes of a request body")
	flag.Parse()
	if err := run(o); err != nil {
		log.Fatal(err)
	}
}

type options struct {
	caddy                         string
	rounds, requests, conns, size int
}

const answer = `{"id":"c1","object":"chat.completion","created":1,"model":"m1","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`

func run(o options) error {
	dir, err := os.MkdirTemp("", "llm_gateway-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.caddy == "" {
		o.caddy = filepath.Join(dir, "caddy")
		build := exec.Command("go", "build", "-o", o.caddy, "./cmd/caddy")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("building: %w", err)
		}
	}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, answer)
	}))
	defer upstream.Close()
	caddy, err := startCaddy(o.caddy, dir, strings.TrimPrefix(upstream.URL, "http://"))
	if err != nil {
		return err
	}
	defer caddy.stop()
	return measure(o, caddy)
}

// measure runs the rounds and prints the table.
func measure(o options, c *caddyProcess) error {
	body := chat(o.size)
	sites := []site{newSite("reverse_proxy", c.plain, o.conns), newSite("llm_gateway", c.gateway, o.conns)}
	for range 10 { // warm up
		for _, s := range sites {
			if _, err := c.load(s, o, body); err != nil {
				return err
			}
		}
	}
	cpu := map[string][]time.Duration{}
	var ratios []float64
	for i := range o.rounds {
		order := slices.Clone(sites)
		if i%2 == 1 {
			slices.Reverse(order)
		}
		for _, s := range order {
			d, err := c.load(s, o, body)
			if err != nil {
				return err
			}
			cpu[s.name] = append(cpu[s.name], d)
		}
		ratios = append(ratios, float64(cpu["llm_gateway"][i])/float64(cpu["reverse_proxy"][i]))
	}
	fmt.Printf("CPU per request, %d rounds of %d requests, %d B body, %d connections\n", o.rounds, o.requests, len(body), o.conns)
	fmt.Printf("%-14s %10s %10s %10s\n", "", "min", "median", "max")
	for _, s := range sites {
		d := cpu[s.name]
		slices.Sort(d)
		fmt.Printf("%-14s %10s %10s %10s\n", s.name, d[0].Round(100), d[len(d)/2].Round(100), d[len(d)-1].Round(100))
	}
	slices.Sort(ratios)
	fmt.Printf("%-14s %9.3fx %9.3fx %9.3fx\n", "ratio", ratios[0], ratios[len(ratios)/2], ratios[len(ratios)-1])
	fmt.Printf("ratio of the sums %.3fx, of the minima %.3fx\n", sum(cpu["llm_gateway"])/sum(cpu["reverse_proxy"]),
		float64(cpu["llm_gateway"][0])/float64(cpu["reverse_proxy"][0]))
	return nil
}

func sum(ds []time.Duration) float64 {
	var total time.Duration
	for _, d := range ds {
		total += d
	}
	return total.Seconds()
}

func chat(size int) []byte {
	const frame = `{"model":"m1","messages":[{"role":"user","content":"%s"}]}`
	return fmt.Appendf(nil, frame, strings.Repeat("x", max(0, size-len(frame)+2)))
}

type site struct {
	name, url string
	client    *http.Client
}

func newSite(name, url string, conns int) site {
	return site{name, url, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: conns}}}
}

// load sends the requests of one round, and returns the CPU time that Caddy took
// for each.
func (c *caddyProcess) load(s site, o options, body []byte) (time.Duration, error) {
	before, err := c.cpu()
	if err != nil {
		return 0, err
	}
	var wg sync.WaitGroup
	failed := make(chan error, o.conns)
	for range o.conns {
		wg.Go(func() {
			for range o.requests / o.conns {
				if err := post(s.client, s.url, body); err != nil {
					failed <- fmt.Errorf("%s: %w", s.name, err)
					return
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-failed:
		return 0, err
	default:
	}
	after, err := c.cpu()
	return (after - before) / time.Duration(o.requests/o.conns*o.conns), err
}

func post(client *http.Client, url string, body []byte) error {
	res, err := client.Post(url+"/v1/chat/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", res.StatusCode)
	}
	return nil
}

// caddyProcess is a Caddy with a plain reverse_proxy and a gateway.
type caddyProcess struct {
	cmd            *exec.Cmd
	plain, gateway string
}

const config = `{
	admin off
	persist_config off
	default_bind 127.0.0.1
	log {
		level ERROR
	}
}
http://:%[1]d {
	reverse_proxy %[3]s
}
http://:%[2]d {
	llm_gateway {
		channel a {
			base_url http://%[3]s/v1
			key sk-bench
		}
		channel b {
			base_url http://%[3]s/v1
			key sk-bench-2
			priority 1
		}
	}
}
`

func startCaddy(binary, dir, upstream string) (*caddyProcess, error) {
	ports, err := freePorts()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(file, fmt.Appendf(nil, config, ports[0], ports[1], upstream), 0o600); err != nil {
		return nil, err
	}
	c := &caddyProcess{
		cmd:     exec.Command(binary, "run", "--config", file),
		plain:   fmt.Sprintf("http://127.0.0.1:%d", ports[0]),
		gateway: fmt.Sprintf("http://127.0.0.1:%d", ports[1]),
	}
	c.cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	c.cmd.Stderr = os.Stderr
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		if err = post(http.DefaultClient, c.gateway, chat(100)); err == nil {
			return c, nil
		}
		select {
		case <-ctx.Done():
			c.stop()
			return nil, fmt.Errorf("caddy does not come up: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (c *caddyProcess) stop() {
	c.cmd.Process.Signal(os.Interrupt)
	c.cmd.Wait()
}

// cpu returns the CPU time that the process has taken so far.
func (c *caddyProcess) cpu() (time.Duration, error) {
	// The kernel's encoding of another process's CPU clock, see
	// clock_getcpuclockid(3).
	const schedClock = 2
	clock := int32(^c.cmd.Process.Pid)<<3 | schedClock
	var ts unix.Timespec
	if err := unix.ClockGettime(clock, &ts); err != nil {
		return 0, err
	}
	return time.Duration(ts.Nano()), nil
}

func freePorts() (ports [2]int, err error) {
	for i := range ports {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return ports, err
		}
		defer ln.Close()
		ports[i] = ln.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}
