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

// A Caddy of its own for each test, with a gateway between the official client
// and two scripted upstreams.

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

import OpenAI from 'openai';

import { Upstream } from './upstream.mjs';

const repository = fileURLToPath(new URL('../..', import.meta.url));

// clientKey is what the client authenticates with. No upstream may see it.
export const clientKey = 'client-key';

let binary;
let built; // the folder of a binary that was built here

// prepare finds the Caddy under test: $CADDY, else one built from this tree.
export async function prepare() {
  binary = process.env.CADDY;
  if (binary) return;
  built = await mkdtemp(path.join(os.tmpdir(), 'llm-gateway-build-'));
  binary = path.join(built, 'caddy');
  await promisify(execFile)('go', ['build', '-o', binary, './cmd/caddy'], { cwd: repository });
}

// cleanUp removes what prepare made.
export async function cleanUp() {
  if (built) await rm(built, { recursive: true, force: true });
}

// start runs a gateway whose channel a is preferred and whose channel b stands
// behind it, until the test ends. options are lines of the gateway; a and b are
// lines of the channels. It returns the upstreams a and b, a client of the
// gateway that does not retry, and connect, which makes clients with options of
// their own.
export async function start(t, { options = '', a = '', b = '' } = {}) {
  const rig = { a: new Upstream('a'), b: new Upstream('b') };
  const undo = [() => checkCredentials(rig)];
  t.after(() => undoAll(undo));
  for (const upstream of [rig.a, rig.b]) {
    await upstream.start();
    undo.push(() => upstream.stop());
  }
  const [port, admin] = await freePorts(2);
  const stop = await serve(caddyfile({ port, admin, rig, options, a, b }), { port });
  undo.push(stop);
  const baseURL = `http://127.0.0.1:${port}/v1`;
  rig.connect = (more) => new OpenAI({ baseURL, apiKey: clientKey, maxRetries: 0, ...more });
  rig.client = rig.connect();
  return rig;
}

// undoAll takes all these steps, the last one first, and fails with what the
// first failing one had to say.
export async function undoAll(undo) {
  const failed = [];
  for (const step of undo.reverse()) {
    try {
      await step();
    } catch (err) {
      failed.push(err);
    }
  }
  if (failed.length > 0) throw failed[0];
}

// serve runs a Caddy with that Caddyfile, and returns once it serves the site at
// port. What it returns stops it, and fails if it had panicked.
export async function serve(caddyfile, { port, env = {} }) {
  const home = await mkdtemp(path.join(os.tmpdir(), 'llm-gateway-e2e-'));
  const config = path.join(home, 'Caddyfile');
  await writeFile(config, caddyfile);
  const caddy = run(config, home, env);
  const stop = async () => {
    await terminate(caddy);
    await rm(home, { recursive: true, force: true });
    assert.doesNotMatch(caddy.log, /panic/);
  };
  try {
    await answering(`http://127.0.0.1:${port}`, caddy);
  } catch (err) {
    await stop();
    throw err;
  }
  return stop;
}

function caddyfile({ port, admin, rig, options, a, b }) {
  return `{
	admin 127.0.0.1:${admin}
	persist_config off
	default_bind 127.0.0.1
	grace_period 1s
}
http://:${port} {
	llm_gateway /v1/* {
		${options}
		channel a {
			base_url http://127.0.0.1:${rig.a.port}/v1
			key ${rig.a.key}
			${a}
		}
		channel b {
			base_url http://127.0.0.1:${rig.b.port}/v1
			key ${rig.b.key}
			priority 1
			${b}
		}
	}
}
`;
}

// freePorts returns n ports at which nobody listens.
export async function freePorts(n) {
  const servers = Array.from({ length: n }, () => net.createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((s) => once(s, 'listening')));
  const ports = servers.map((s) => s.address().port);
  await Promise.all(servers.map((s) => once(s.close(), 'close')));
  return ports;
}

function run(config, home, env) {
  const child = spawn(binary, ['run', '--config', config, '--adapter', 'caddyfile'], {
    env: { PATH: process.env.PATH, HOME: home, XDG_CONFIG_HOME: home, XDG_DATA_HOME: home, ...env },
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

// answering waits until Caddy serves the site. Outside of /v1 no upstream is
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

// checkCredentials makes sure that each upstream got its channel's key and
// nothing of the client's.
function checkCredentials({ a, b }) {
  for (const upstream of [a, b]) {
    for (const { url, headers, body } of upstream.requests) {
      assert.equal(headers.authorization, `Bearer ${upstream.key}`, `key sent to ${upstream.name}`);
      const seen = `${url} ${JSON.stringify(headers)} ${body.toString('latin1')}`;
      assert.ok(!seen.includes(clientKey), `the client's key was sent to ${upstream.name}`);
    }
  }
}
