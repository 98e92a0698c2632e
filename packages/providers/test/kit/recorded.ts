import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { sseRecord } from './bytes.ts'

const root = resolve(import.meta.dirname, '../../../..')

/** The folder of recorded streams. They belong to their sources and are not part of the repository. */
const recordings = process.env['TALLYSTICK_FIXTURES'] ?? join(root, '../shared/fixtures')

/** Why recorded streams are not tested here; `undefined` when they are. */
export const missing: string | undefined = existsSync(join(recordings, 'anthropic'))
  ? undefined
  : `skipped: no recorded streams at TALLYSTICK_FIXTURES or beside the repository`

/** The body of a recording, as it came over HTTP. `provider` is the folder that it is in. */
export function recordedBytes(file: string, provider = 'anthropic'): Uint8Array {
  const bytes = readFileSync(join(recordings, provider, file))
  if (!file.endsWith('.jsonl')) return bytes
  const lines = bytes
    .toString('utf8')
    .split('\n')
    .filter((line) => line.trim() !== '')
  return new TextEncoder().encode(lines.map((line) => sseRecord(JSON.parse(line))).join(''))
}
