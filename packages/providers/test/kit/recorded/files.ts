import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { dataRecord, sseRecord } from '../bytes.ts'

const root = resolve(import.meta.dirname, '../../../../..')

/** The folder of recorded streams. They belong to their sources and are not part of the repository. */
const recordings = process.env['TALLYSTICK_FIXTURES'] ?? join(root, '../shared/fixtures')

/** Whether recorded streams are there: they are tested on top of those that were written by hand. */
export const areRecorded: boolean = existsSync(join(recordings, 'anthropic'))

/** The body of a recording, as it came over HTTP. */
export function recordedBytes(file: string, folder: string): Uint8Array {
  const bytes = readFileSync(join(recordings, folder, file))
  if (!file.endsWith('.jsonl')) return bytes
  const events = bytes
    .toString('utf8')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line): unknown => JSON.parse(line))
  // Chat Completions gives its events no names, and says when it is done.
  const chat = folder === 'openai-chat' || folder === 'openai-compatible'
  const body = chat ? events.map(dataRecord).join('') + 'data: [DONE]\n\n' : events.map(sseRecord).join('')
  return new TextEncoder().encode(body)
}
