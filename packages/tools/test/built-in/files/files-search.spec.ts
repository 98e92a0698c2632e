// What search_files shows of the lines that it finds, and what it says of the files that it passes over.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { caller, disturbedTools, sandbox, type Sandbox, toolsOver } from './sandbox.ts'

function filled(files: Readonly<Record<string, string | Uint8Array>>): Sandbox {
  const box = sandbox()
  onTestFinished(() => box.remove())
  box.put(files)
  return box
}

const lines = (count: number): string =>
  Array.from({ length: count }, (_, index) => `line ${index + 1}\n`).join('')

describe('search_files', () => {
  const text = 'alpha\nBeta (x*)+\nalpha beta\nend\n'

  it('shows the lines with their numbers below the path', async () => {
    const call = caller(toolsOver(filled({ 'a.txt': text, 'sub/b.txt': 'none\n', 'sub/c.md': 'x (x*)+' })))
    expect((await call('search_files', { text: '(x*)+' })).text).toBe(
      '2 lines with "(x*)+" in 2 files.\na.txt\n  2: Beta (x*)+\nsub/c.md\n  1: x (x*)+',
    )
    expect((await call('search_files', { text: 'BETA', ignoreCase: true, path: 'a.txt' })).text).toBe(
      '2 lines with "BETA" in 1 file in "a.txt".\na.txt\n  2: Beta (x*)+\n  3: alpha beta',
    )
    expect((await call('search_files', { text: 'BETA' })).text).toBe('0 lines with "BETA".')
    expect((await call('search_files', { text: 'x', glob: '*.md' })).text).toBe(
      '1 line with "x" in 1 file.\nsub/c.md\n  1: x (x*)+',
    )
  })

  it('shows lines around, each once, with a mark where some are left out', async () => {
    const call = caller(toolsOver(filled({ 'a.txt': lines(12) })))
    const { text: found } = await call('search_files', { text: '1', context: 1 })
    expect(found.split('\n').slice(2)).toEqual([
      ...[
        '  1: line 1',
        '  2- line 2',
        '  …',
        '  9- line 9',
        '  10: line 10',
        '  11: line 11',
        '  12: line 12',
      ],
    ])
  })

  it('shows the part of a long line in which the text is', async () => {
    const call = caller(toolsOver(filled({ 'a.js': `${'x'.repeat(5_000)}needle${'y'.repeat(5_000)}` })))
    const { text: found } = await call('search_files', { text: 'needle' })
    expect(found).toMatch(/ {2}1: … x+needley+ … \(cut\)$/)
    expect(found.length).toBeLessThan(400)
  })

  it('says which files it passed over, and where it stopped', async () => {
    const box = filled({ 'a.bin': 'x\0', 'b.txt': 'x'.repeat(600), 'c.txt': 'x\nx\nx\n', 'd.txt': 'x' })
    const call = caller(toolsOver(box, 'by handle', { maxFileBytes: 500, maxEntries: 2 }))
    expect((await call('search_files', { text: 'x' })).text).toBe(
      '2 lines with "x" in 1 file. These are the first; there are more. Search for a longer text, or name a glob or a folder. ' +
        'Files not searched: 1 binary, 1 larger than 500 bytes.\nc.txt\n  1: x\n  2: x',
    )
  })

  it('looks for one line', async () => {
    const { outcome, text: why } = await caller(toolsOver(filled({})))('search_files', { text: 'a\nb' })
    expect([outcome, why]).toEqual([
      'failed',
      'The text holds a line break, and lines are searched one by one. Search for one line of it.',
    ])
  })

  it('takes a glob from the folder that is searched, and of a file by its name', async () => {
    const call = caller(
      toolsOver(filled({ 'src/deep/c.ts': 'x', 'src/deep/d.ts': 'x', 'src/e.ts': 'x', 'f.ts': 'x' })),
    )
    const found = async (path: string, glob: string) =>
      (await call('search_files', { text: 'x', path, glob })).text
    expect(await found('src', 'deep/c.*')).toBe('1 line with "x" in 1 file in "src".\nsrc/deep/c.ts\n  1: x')
    expect(await found('src/deep/c.ts', '*.ts')).toBe(
      '1 line with "x" in 1 file in "src/deep/c.ts".\nsrc/deep/c.ts\n  1: x',
    )
    for (const glob of ['deep/*.ts', 'src/deep/*.ts'])
      expect(await found('src/deep/c.ts', glob)).toBe('0 lines with "x" in "src/deep/c.ts".')
  })

  it('marks what is left out between two lines, and nothing before the first of them', async () => {
    const call = caller(toolsOver(filled({ 'a.txt': 'a\nb\nx\nc\nd\ne\nx\nf\n' })))
    const found = async (context: number) =>
      (await call('search_files', { text: 'x', context })).text.split('\n').slice(2)
    expect(await found(0)).toEqual(['  3: x', '  7: x'])
    expect(await found(1)).toEqual(['  2- b', '  3: x', '  4- c', '  …', '  6- e', '  7: x', '  8- f'])
    expect(await found(2)).toHaveLength(8)
    expect(await found(2)).not.toContain('  …')
  })

  it('shows the lines after the last match, however many matches a result may have', async () => {
    const call = caller(toolsOver(filled({ 'a.txt': 'x\nx\nend\n' }), 'by handle', { maxEntries: 2 }))
    expect((await call('search_files', { text: 'x', context: 1 })).text).toBe(
      '2 lines with "x" in 1 file.\na.txt\n  1: x\n  2: x\n  3- end',
    )
  })

  it('shows lines of 300 characters whole, and of a longer one the part from 100 characters before the text', async () => {
    const fill = (count: number): string => '.'.repeat(count)
    const shownOf = async (line: string, input: object = {}): Promise<string> => {
      const call = caller(toolsOver(filled({ 'a.txt': line })))
      return (await call('search_files', { text: 'X', ...input })).text.split('\n')[2] ?? ''
    }
    expect(await shownOf(`${fill(299)}X`)).toBe(`  1: ${fill(299)}X`)
    expect(await shownOf(`X${fill(300)}`)).toBe(`  1: X${fill(291)} … (cut)`)
    expect(await shownOf(`${fill(100)}X${fill(200)}`)).toBe(`  1: ${fill(100)}X${fill(191)} … (cut)`)
    expect(await shownOf(`${fill(101)}X${fill(199)}`)).toBe(`  1: … ${fill(100)}X${fill(199)}`)
    expect(await shownOf(`x${fill(399)}X`)).toBe(`  1: … ${fill(100)}X`)
    for (const text of ['x', 'X'])
      expect(await shownOf(`${fill(400)}X`, { text, ignoreCase: true })).toBe(`  1: … ${fill(100)}X`)
  })

  it('shows the text of a long line also where letters before it are longer in lower case', async () => {
    const call = caller(toolsOver(filled({ 'a.txt': `${'İ'.repeat(1_000)} needle` })))
    const { text: found } = await call('search_files', { text: 'NEEDLE', ignoreCase: true })
    expect(found).toBe(`1 line with "NEEDLE" in 1 file.\na.txt\n  1: … ${'İ'.repeat(99)} needle`)
  })

  it('finds a letter in each of its forms where case does not matter', async () => {
    const call = caller(toolsOver(filled({ 'a.txt': 'οδυσσευς\nΟΔΥΣΣΕΥΣ\nΟδυσσέας\n' })))
    for (const text of ['Οδυσσευς', 'ΟΔΥΣΣΕΥΣ', 'οδυσσευσ', 'ΔΥΣ']) {
      const { text: found } = await call('search_files', { text, ignoreCase: true })
      expect(found.split('\n').slice(2, 4)).toEqual(['  1: οδυσσευς', '  2: ΟΔΥΣΣΕΥΣ'])
    }
  })

  it('fills a result to the last byte, and says that it is full at the next one', async () => {
    const box = filled({ 'a.txt': 'x1\nx2\nx3\n' })
    const shown = 'a.txt\n  1: x1\n  2: x2\n  3: x3'
    const found = async (maxBytes: number) =>
      (await caller(toolsOver(box, 'by handle', { maxBytes }))('search_files', { text: 'x' })).text
    const whole = Buffer.byteLength(`${shown}\n`)
    expect(await found(whole)).toBe(`3 lines with "x" in 1 file.\n${shown}`)
    expect(await found(whole - 1)).toBe(
      '2 lines with "x" in 1 file. These are the first; there are more. Search for a longer text, or name a glob or a folder.\na.txt\n  1: x1\n  2: x2',
    )
  })

  it('counts the files that it does not search, by why', async () => {
    const box = filled({
      'a.bin': '\0',
      'b.bin': '\0',
      'c.txt': 'x'.repeat(501),
      'd.txt': 'x',
      'gone.txt': 'x',
    })
    const before = (name: string): void => {
      if (name === 'gone.txt') rmSync(join(box.root, name))
    }
    const call = caller(disturbedTools(box, { before }))
    expect((await call('search_files', { text: 'x' })).text).toBe(
      '1 line with "x" in 1 file. Files not searched: 2 binary, 1 larger than 500 bytes, 1 that cannot be read.\nd.txt\n  1: x',
    )
  })
})
