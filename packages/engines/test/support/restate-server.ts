// A Restate server of its own, on free ports of the loopback, with its data in a folder that goes when it ends. It says on stdout
// where it listens, a line of JSON, and ends when stdin does, so with the process that asked for it, however that ends. A line on
// stdin kills it at once; it starts again on the same ports and data, and says so.
// Usage: restate-server.ts PROGRAM
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const [program = ''] = process.argv.slice(2)
const folder = mkdtempSync(join(tmpdir(), 'tallystick-restate-'))

/** The names that the servers of Restate have in its log, and the setting of the port of each. */
const settings: Readonly<Record<string, string>> = {
  'http-ingress-server': 'RESTATE_INGRESS__BIND_PORT',
  'admin-api-server': 'RESTATE_ADMIN__BIND_PORT',
  'message-fabric-server': 'RESTATE_BIND_PORT',
}
const ports: Record<string, string> = {}

let kill = (): void => {}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
process.stdin.on('data', () => kill())
process.stdin.once('end', () => kill())

while (!process.stdin.readableEnded) {
  const isFirst = Object.keys(ports).length === 0
  const server = spawn(
    program,
    [`--use-random-ports=${isFirst}`, '--listen-mode=tcp', '--bind-ip=127.0.0.1', '--no-logo'],
    {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        ...process.env,
        ...ports,
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
  let isKilled = false
  kill = () => {
    isKilled = true
    server.kill('SIGKILL')
  }
  const listening = new Set<string>()
  for await (const line of createInterface({ input: server.stdout })) {
    const { fields, spans = [] } = JSON.parse(line) as { fields?: object; spans?: object[] }
    const said = Object.assign({}, ...spans, fields) as Record<string, string>
    const setting = settings[said['server_name'] ?? '']
    if (setting === undefined || listening.size === Object.keys(settings).length) continue
    listening.add(setting)
    ports[setting] = String(said['server.port'])
    if (listening.size < Object.keys(settings).length) continue
    const toUrl = (name: string): string => `http://127.0.0.1:${ports[name]}`
    const found = { ingress: toUrl('RESTATE_INGRESS__BIND_PORT'), admin: toUrl('RESTATE_ADMIN__BIND_PORT') }
    process.stdout.write(`${JSON.stringify(found)}\n`)
  }
  await exit
  if (!isKilled) break
}
rmSync(folder, { recursive: true, force: true })
