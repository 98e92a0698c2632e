import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { onTestFinished } from 'vitest'

const folder =
  process.env['TALLYSTICK_FIXTURES'] ?? resolve(import.meta.dirname, '../../../../../shared/fixtures')

/** Why recorded streams are not tested here; `undefined` when they are. */
export const missing: string | undefined = existsSync(join(folder, 'anthropic'))
  ? undefined
  : 'skipped: no recorded streams at TALLYSTICK_FIXTURES or beside the repository'

/** A recorded stream: the folder of its provider, and the file. */
export interface RecordedStream {
  readonly provider: string
  readonly file: string
}

/** Every recorded stream of some providers. */
export function recordedStreams(providers: readonly string[]): readonly RecordedStream[] {
  return providers.flatMap((provider) => {
    const place = join(folder, provider)
    const files = existsSync(place) ? readdirSync(place) : []
    return files.filter((file) => /\.(sse|jsonl|ndjson)$/.test(file)).map((file) => ({ provider, file }))
  })
}

/**
 * Gives a recorded stream as the answer to every request, in pieces of 211 bytes, until the test ends. The connection of
 * the first `breaksOff` requests ends after a quarter of the stream. Returns its URL.
 */
export async function serveStream({ provider, file }: RecordedStream, breaksOff = 0): Promise<string> {
  const body = bodyOf(provider, file)
  let broken = 0
  const type = file.endsWith('.ndjson') ? 'application/x-ndjson' : 'text/event-stream'
  const server = createServer((request, response) => {
    request.resume()
    response.writeHead(200, { 'content-type': type })
    if (broken < breaksOff) {
      broken++
      response.write(body.subarray(0, body.length / 4), () => response.destroy())
      return
    }
    for (let from = 0; from < body.length; from += 211) response.write(body.subarray(from, from + 211))
    response.end()
  })
  await new Promise<void>((done) => void server.listen(0, '127.0.0.1', done))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A recording as it came over HTTP: of a list of payloads, each is an event. */
function bodyOf(provider: string, file: string): Buffer {
  const bytes = readFileSync(join(folder, provider, file))
  if (!file.endsWith('.jsonl')) return bytes
  const lines = bytes
    .toString('utf8')
    .split('\n')
    .filter((line) => line.trim() !== '')
  // Chat Completions gives its events no names, and says when it is done.
  const isChat = provider === 'openai-chat' || provider === 'openai-compatible'
  if (isChat) return Buffer.from(`${lines.map((line) => `data: ${line}\n\n`).join('')}data: [DONE]\n\n`)
  const events = lines.map(
    (line) => `event: ${(JSON.parse(line) as { type: string }).type}\ndata: ${line}\n\n`,
  )
  return Buffer.from(events.join(''))
}
