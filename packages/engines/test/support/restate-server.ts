// A Restate server of its own, on free ports of the loopback, with its data in a folder that goes when it ends. It says on stdout
// where it listens, a line of JSON, and ends when stdin does, so with the process that asked for it, however that ends.
// Usage: restate-server.ts PROGRAM
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const [program = ''] = process.argv.slice(2)
const folder = mkdtempSync(join(tmpdir(), 'tallystick-restate-'))
const server = spawn(
  program,
  ['--use-random-ports=true', '--listen-mode=tcp', '--bind-ip=127.0.0.1', '--no-logo'],
  {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...process.env,
      RESTATE_BASE_DIR: folder,
      RESTATE_LOG_FORMAT: 'json',
      RESTATE_LOG_FILTER: 'error,octocrab=off,restate_ingress_http=info,restate_core::network=info',
      RESTATE_DISABLE_TELEMETRY: 'true',
      DO_NOT_TRACK: '1',
      RESTATE_DEFAULT_NUM_PARTITIONS: '1',
      RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE: '128 MB',
    },
  },
)
const exit = once(server, 'exit')
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
process.stdin.resume().once('end', () => server.kill('SIGKILL'))

/** The name that a server of Restate has in its log, and in what is said here. */
const names: Readonly<Record<string, string>> = {
  'http-ingress-server': 'ingress',
  'admin-api-server': 'admin',
}
const found: Record<string, string> = {}
for await (const line of createInterface({ input: server.stdout })) {
  const { fields, spans = [] } = JSON.parse(line) as { fields?: object; spans?: object[] }
  const said = Object.assign({}, ...spans, fields) as Record<string, string>
  const name = names[said['server_name'] ?? '']
  if (name === undefined || (found['admin'] && found['ingress'])) continue
  found[name] = `http://127.0.0.1:${said['server.port']}`
  if (found['admin'] && found['ingress']) process.stdout.write(`${JSON.stringify(found)}\n`)
}
await exit
rmSync(folder, { recursive: true, force: true })
