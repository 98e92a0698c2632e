import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
const folder = fileURLToPath(new URL('..', import.meta.url))

describe('the example in the README', () => {
  it('runs unchanged and prints what the README says', () => {
    const [, example = ''] = /```ts\n(.*?)```/s.exec(readme) ?? []
    const [, first = '', second = ''] = /It prints `(.+?)`, then `(.+?)`/.exec(readme) ?? []
    const printed = execFileSync(
      process.execPath,
      ['--no-warnings', '--input-type=module-typescript', '--eval', example],
      {
        cwd: folder,
        encoding: 'utf8',
      },
    )
    expect(printed).toBe(`${first}\n${second}\n`)
    expect(first).toBe('refund more than 50 euros')
  })
})
