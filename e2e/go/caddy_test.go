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

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// binary is the Caddy under test.
var binary = os.Getenv("CADDY")

func TestMain(m *testing.M) {
	os.Exit(testMain(m))
}

// testMain builds a Caddy from this tree unless $CADDY names one.
func testMain(m *testing.M) int {
	if binary != "" {
		return m.Run()
	}
	folder, err := os.MkdirTemp("", "llm-gateway-build-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	binary = filepath.Join(folder, "caddy")
	build := exec.Command("go", "build", "-o", binary, "./cmd/caddy")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building Caddy: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// serve runs Caddy with the given site on a free port until the test ends, and
// returns its URL.
func serve(t *testing.T, site string) string {
	t.Helper()
	home := t.TempDir()
	port, admin := freePort(t), freePort(t)
	config := filepath.Join(home, "Caddyfile")
	text := fmt.Sprintf("{\n\tadmin 127.0.0.1:%d\n\tpersist_config off\n\tdefault_bind 127.0.0.1\n\tgrace_period 1s\n}\n"+
		"http://:%d {\n%s}\n", admin, port, site)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	caddy := exec.Command(binary, "run", "--config", config, "--adapter", "caddyfile")
	caddy.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_CONFIG_HOME=" + home, "XDG_DATA_HOME=" + home}
	caddy.Stderr = &log
	if err := caddy.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, ended := context.WithCancel(context.Background())
	go func() {
		defer ended()
		_ = caddy.Wait() // ended by a signal
	}()
	t.Cleanup(func() {
		_ = caddy.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
			_ = caddy.Process.Kill()
			<-ctx.Done()
		}
		if strings.Contains(log.String(), "panic") {
			t.Errorf("Caddy panicked:\n%s", log.String())
		}
	})
	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	if !answers(ctx, url) {
		_ = caddy.Process.Kill() // so that the log is whole
		<-ctx.Done()
		t.Fatalf("Caddy does not answer:\n%s", log.String())
	}
	return url
}

// answers waits until Caddy serves the site. At / no upstream is asked.
func answers(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		if res, err := http.Get(url); err == nil {
			res.Body.Close()
			return true
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	return false
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}
