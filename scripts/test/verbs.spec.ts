import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { verbList } from '../verbs/list.ts'

const list = readFileSync(new URL('../../packages/cli/src/verb-list.ts', import.meta.url), 'utf8')

describe('packages/cli/src/verb-list.ts', () => {
  it('is what the files of the verbs say: after a change of one, run `pnpm verbs`', async () => {
    expect(list).toBe(await verbList())
  })
})
