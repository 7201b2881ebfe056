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

// Runs the tests of all clients against one Caddy, and prints which call of
// which client passed under which fault. Arguments go to node's test runner.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { cleanUp, prepare } from './caddy.mjs';

const here = (folder) => fileURLToPath(new URL(folder, import.meta.url));

// run runs a command in a folder and returns its exit code.
async function run(folder, command, args, env) {
  const child = spawn(command, args, { cwd: here(folder), env: { ...process.env, ...env }, stdio: ['ignore', 'inherit', 'inherit'] });
  const [code] = await once(child, 'close');
  return code ?? 1;
}

// table is a Markdown table of the results in a folder.
async function table(folder) {
  const files = (await readdir(folder)).sort();
  const lines = await Promise.all(files.map((file) => readFile(path.join(folder, file), 'utf8')));
  const cells = lines.flatMap((text) => text.trim().split('\n').map((line) => JSON.parse(line)));
  const faults = [...new Set(cells.map((cell) => cell.fault))];
  const rows = new Map();
  for (const { client, call, fault, passed } of cells) {
    const row = `${client} | ${call}`;
    if (!rows.has(row)) rows.set(row, new Map());
    rows.get(row).set(fault, passed ? 'ok' : 'FAILED');
  }
  const head = `| client | call | ${faults.join(' | ')} |\n|${' --- |'.repeat(faults.length + 2)}`;
  const body = [...rows].map(([row, of]) => `| ${row} | ${faults.map((fault) => of.get(fault) ?? '').join(' | ')} |`);
  const failed = cells.filter((cell) => !cell.passed).length;
  return `${head}\n${body.join('\n')}\n\n${cells.length} cells, ${failed} failed\n`;
}

const results = await mkdtemp(path.join(os.tmpdir(), 'llm-gateway-results-'));
try {
  const env = { CADDY: await prepare(), E2E_RESULTS: results };
  const codes = await Promise.all([
    run('.', process.execPath, ['--test', '--test-reporter=dot', ...process.argv.slice(2)], env),
    run('../go', 'go', ['test', '-count=1', './...'], env),
  ]);
  console.log(`\n${await table(results)}`);
  process.exitCode = Math.max(...codes);
} finally {
  await cleanUp();
  await rm(results, { recursive: true, force: true });
}
