import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { transitionDiagram } from '@tallystick/core/machine'

describe('ARCHITECTURE.md', () => {
  const page = new URL('../../ARCHITECTURE.md', import.meta.url)

  it('shows the diagram that the transition table gives', async () => {
    const shown = /```mermaid\n([\s\S]*?)\n```/.exec(await readFile(page, 'utf8'))?.[1]
    expect(shown).toBe(transitionDiagram())
  })

  it('names only files that are there', async () => {
    const text = await readFile(page, 'utf8')
    const table = text.slice(
      text.indexOf('## Where do I find'),
      text.indexOf('## The walk of one text delta'),
    )
    const named = [...table.matchAll(/`((?:core|ledger|replay|providers|tools|cli)\/src\/[\w./-]+)`/g)].map(
      ([, path]) => path,
    )
    expect(named.length).toBeGreaterThan(15)
    for (const path of named) {
      const place = new URL(`../../packages/${path}`, import.meta.url)
      const there = await readFile(place).then(
        () => true,
        (error: NodeJS.ErrnoException) => error.code === 'EISDIR',
      )
      expect({ path, there }).toEqual({ path, there: true })
    }
  })
})
