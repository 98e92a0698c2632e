// A server that gives the answers of a file, without any library: `node raw-server.ts FILE`, where the file holds results by
// method. A method that is not named is never answered.
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

const [, , file = ''] = process.argv
const known = JSON.parse(readFileSync(file, 'utf8')) as Readonly<Record<string, unknown>>
const hello = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {} },
  serverInfo: { name: 'raw', version: '1' },
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method } = JSON.parse(line) as { readonly id?: number; readonly method: string }
  if (id === undefined) continue
  const result = method === 'initialize' ? { ...hello, ...Object(known[method]) } : known[method]
  if (result !== undefined) process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`)
}
