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

// The Caddy under test: found or built, run with a configuration of its own,
// ended.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const repository = fileURLToPath(new URL('../..', import.meta.url));

let binary;
let built; // the folder of a binary that was built here

// prepare finds the Caddy under test, $CADDY, else one built from this tree, and
// returns its path.
export async function prepare() {
  binary = process.env.CADDY;
  if (binary) return binary;
  built = await mkdtemp(path.join(os.tmpdir(), 'llm-gateway-build-'));
  binary = path.join(built, 'caddy');
  await promisify(execFile)('go', ['build', '-o', binary, './cmd/caddy'], { cwd: repository });
  return binary;
}

// cleanUp removes what prepare made.
export async function cleanUp() {
  if (built) await rm(built, { recursive: true, force: true });
}

// serve runs Caddy with a Caddyfile that serves the given sites on one port,
// and returns its url and stop, which ends it. sites is a function of that port.
export async function serve(sites) {
  const home = await mkdtemp(path.join(os.tmpdir(), 'llm-gateway-e2e-'));
  const [port, admin] = await freePorts(2);
  const config = path.join(home, 'Caddyfile');
  await writeFile(config, globalOptions(admin) + sites(port));
  const caddy = run(config, home);
  const stop = async () => {
    await terminate(caddy);
    await rm(home, { recursive: true, force: true });
    assert.doesNotMatch(caddy.log, /panic/);
  };
  const url = `http://127.0.0.1:${port}`;
  try {
    await answering(url, caddy);
  } catch (err) {
    await stop();
    throw err;
  }
  return { url, stop };
}

const globalOptions = (admin) => `{
	admin 127.0.0.1:${admin}
	persist_config off
	default_bind 127.0.0.1
	grace_period 1s
}
`;

async function freePorts(n) {
  const servers = Array.from({ length: n }, () => net.createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((s) => once(s, 'listening')));
  const ports = servers.map((s) => s.address().port);
  await Promise.all(servers.map((s) => once(s.close(), 'close')));
  return ports;
}

function run(config, home) {
  const child = spawn(binary, ['run', '--config', config, '--adapter', 'caddyfile'], {
    env: { PATH: process.env.PATH, HOME: home, XDG_CONFIG_HOME: home, XDG_DATA_HOME: home },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const caddy = { child, log: '', ended: once(child, 'close') };
  caddy.ended.catch((err) => (caddy.log += err.message)); // it could not be started
  child.stderr.setEncoding('utf8').on('data', (text) => (caddy.log += text));
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  child.once('exit', () => process.removeListener('exit', kill));
  return caddy;
}

const running = ({ child }) => child.pid !== undefined && child.exitCode === null && child.signalCode === null;

// answering waits until Caddy serves the site. At / no upstream is
// asked.
async function answering(url, caddy) {
  for (const end = Date.now() + 20_000; running(caddy) && Date.now() < end; await sleep(20)) {
    try {
      await (await fetch(url)).arrayBuffer();
      return;
    } catch {
      // not listening yet
    }
  }
  throw new Error(`Caddy does not answer:\n${caddy.log}`);
}

async function terminate(caddy) {
  if (!running(caddy)) return;
  caddy.child.kill('SIGTERM');
  const timer = setTimeout(() => caddy.child.kill('SIGKILL'), 10_000);
  await caddy.ended;
  clearTimeout(timer);
}
