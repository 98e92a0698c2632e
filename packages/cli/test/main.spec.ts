// The program itself, in a process of its own.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { startTallystick } from './kit/tallystick.ts'

const home = join(import.meta.dirname, '..')
const { version } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8')) as {
  readonly version: string
}

describe('the program', () => {
  it.each(['--version', '-V'])('prints its version, and nothing else, with %s', async (word) => {
    expect(await startTallystick(word).ending).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
  })

  it('ends without an error where the reader of its output has seen enough', async () => {
    const child = spawn(process.execPath, [join(home, 'src/main.ts'), '--help'], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    child.stdout.destroy()
    const said = text(child.stderr)
    expect(await once(child, 'close')).toEqual([0, null])
    expect(await said).toBe('')
  })
})
