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

// Every call of a client under every fault: one Caddy for all of a client's
// cells, with a gateway of its own for each, so that none sees the failures of
// another. What the providers answer is in ../wire.

import assert from 'node:assert/strict';
import { appendFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';

import { cleanUp, prepare, serve } from './caddy.mjs';
import { faults } from './faults.mjs';
import { Upstream } from './upstream.mjs';
import { answer, readWire } from './wire.mjs';

// clientKey is what the clients authenticate with. No upstream may see it.
const clientKey = 'client-key';

// matrix makes the tests of a client, which is described by
//
//   name      as shown in the table
//   api       its file in ../wire
//   path      what its base address has after the gateway's
//   connect   makes a client from a base address, a key and, where it retries,
//             whether it may
//   calls     by name; run makes the call and returns which upstream the answer
//             names. Of a stream it calls seen at the first content.
//   noModel   what it takes in place of a model and sends no model for, if any
//   raises    by status: checks an exception
//   broken    checks the exception of a stream that broke off
//   text      returns the text of an exception
//   header    returns a header of an exception's answer, where the client has it
export function matrix(client) {
  const rig = { client, wires: {}, sites: [] };
  const cells = [];
  for (const [name, call] of Object.entries(client.calls))
    for (const [faultName, fault] of Object.entries(faults))
      if (fault.fits({ name, ...call }, client)) cells.push({ name, call, faultName, fault, id: `cell${cells.length}` });

  before(() => startRig(rig, cells), { timeout: 600_000 });
  after(() => stopRig(rig));
  for (const name of Object.keys(client.calls)) {
    describe(`${client.name}: ${name}`, () => {
      for (const cell of cells.filter((c) => c.name === name)) {
        it(cell.faultName, { timeout: 30_000 }, () => recorded(client, cell, () => play(rig, cell)));
      }
    });
  }
}

async function startRig(rig, cells) {
  await prepare();
  for (const name of ['a', 'b']) {
    rig[name] = new Upstream(name);
    rig.wires[name] = readWire(rig.client.api, name);
    await rig[name].start();
  }
  rig.caddy = await serve((port) => `http://:${port} {\n${cells.map((cell) => gateway(rig, cell)).join('')}}\n`);
}

async function stopRig({ a, b, caddy }) {
  await a?.stop();
  await b?.stop();
  await caddy?.stop();
  await cleanUp();
}

function gateway({ a, b, wires }, { id, fault }) {
  const { provider, base } = wires.a;
  const address = (upstream) => `http://127.0.0.1:${upstream.port}${base}`;
  return `	handle_path /${id}/* {
		llm_gateway ${id} {
			${fault.options ?? ''}
			channel a {
				provider ${provider}
				base_url ${fault.refuses ? refusing : address(a)}
				key ${a.key}
				${fault.channels ?? ''}
			}
			channel b {
				provider ${provider}
				base_url ${address(b)}
				key ${b.key}
				priority 1
				${fault.channels ?? ''}
			}
		}
	}
`;
}

// refusing is an address that nobody listens on.
const refusing = 'http://127.0.0.1:1';

// play makes the call of a cell and checks what its user gets, and who was
// asked.
async function play(rig, { name, call, fault, id }) {
  const { client, wires } = rig;
  rig.firstContent = new Promise((resolve) => (rig.seen = resolve));
  for (const upstream of [rig.a, rig.b]) {
    upstream.requests.length = 0;
    upstream.script = fault.script?.({ wire: wires[upstream.name], call, upstream, rig }) ?? answer(wires[upstream.name], call);
  }
  const url = `${rig.caddy.url}/${id}${client.path}`;
  const text = fault.text ?? 'hello';
  const run = (more) =>
    call.run(client.connect(url, clientKey, false), { model: 'm1', text, seen: rig.seen, ...more });
  await fault.play({ ...rig, run, call, retrying: () => client.connect(url, clientKey, true) });
  for (const upstream of [rig.a, rig.b]) checkRequests(rig, upstream, name, call.sends(text));
}

// checkRequests makes sure that an upstream got the channel's key, nothing of
// the client's, and what the client sent.
function checkRequests({ wires }, { name, key, requests }, call, sent) {
  const { header, value } = wires[name].auth;
  for (const { url, headers, body } of requests) {
    assert.equal(headers[header], value.replace('KEY', key), `key sent to ${name}`);
    const seen = `${url} ${JSON.stringify(headers)} ${body.toString('latin1')}`;
    assert.ok(!seen.includes(clientKey), `the client's key was sent to ${name}`);
    for (const part of sent) assert.ok(body.includes(part), `${call}: ${name} did not get ${part}: ${body}`);
  }
}

// recorded writes down how the cell went, for the table.
async function recorded(client, { name, faultName }, f) {
  let passed = false;
  try {
    await f();
    passed = true;
  } finally {
    const line = JSON.stringify({ client: client.name, call: name, fault: faultName, passed });
    if (process.env.E2E_RESULTS) appendFileSync(path.join(process.env.E2E_RESULTS, `${client.name}.ndjson`), `${line}\n`);
  }
}
