// What edit_file changes, what it refuses, and what it shows of both.
import fs from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { callTool } from '@tallystick/testkit'
import { Subject } from 'rxjs'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import * as fc from 'fast-check'
import { findText } from '../../../src/built-in/files/edit.ts'
import { hasWindowsLines } from '../../../src/built-in/files/text.ts'
import { caller, sandbox, type Sandbox, toolsOver, ways } from './sandbox.ts'

function filled(files: Readonly<Record<string, string>>): Sandbox {
  const box = sandbox()
  onTestFinished(() => box.remove())
  box.put(files)
  return box
}

describe.each(ways)('edit_file (%s)', (way) => {
  const text = 'function a() {\n  return 1\n}\n\nfunction b() {\n  return 1\n}\n'

  it('replaces a text that occurs once, and shows the lines that came of it', async () => {
    const box = filled({ 'a.ts': text })
    const call = caller(toolsOver(box, way))
    expect(
      (await call('edit_file', { path: 'a.ts', oldText: 'b() {\n  return 1', newText: 'b() {\n  return 2' }))
        .text,
    ).toBe('Edited "a.ts": 1 replacement at line 5.\n4\t\n5\tfunction b() {\n6\t  return 2\n7\t}')
    expect(box.read('a.ts')).toBe(text.replace('b() {\n  return 1', 'b() {\n  return 2'))
  })

  it('refuses an edit that would make the file too large, before it is made', async () => {
    const box = filled({ 'a.txt': 'a'.repeat(100_000) })
    const newText = 'b'.repeat(100_000)
    const input = { path: 'a.txt', oldText: 'a', newText, replaceAll: true }
    expect((await caller(toolsOver(box, way))('edit_file', input)).text).toBe(
      '"a.txt" would have more than 10000000 bytes, and at most that many are written. Nothing was changed.',
    )
    expect(box.read('a.txt')).toHaveLength(100_000)
  })

  it('takes both texts as they are', async () => {
    const box = filled({ 'a.txt': 'cost: $1 [x]*' })
    await caller(toolsOver(box, way))('edit_file', { path: 'a.txt', oldText: '$1 [x]*', newText: "$& $' $$" })
    expect(box.read('a.txt')).toBe("cost: $& $' $$")
  })

  it('asks for more text where it occurs more than once, and replaces all on request', async () => {
    const box = filled({ 'a.ts': text })
    const call = caller(toolsOver(box, way))
    const input = { path: 'a.ts', oldText: 'return 1', newText: 'return 22' }
    expect(await call('edit_file', input)).toEqual({
      outcome: 'failed',
      text: 'oldText occurs 2 times in "a.ts", at lines 2, 6. Nothing was changed. Give more of the text around the one that is meant, or set replaceAll to change all of them.',
    })
    expect(box.read('a.ts')).toBe(text)
    expect((await call('edit_file', { ...input, replaceAll: true })).text).toMatch(
      /^Edited "a\.ts": 2 replacements at lines 2, 6\./,
    )
    expect(box.read('a.ts')).toBe(text.replaceAll('return 1', 'return 22'))
  })

  it('says what was found where the text does not occur', async () => {
    const box = filled({ 'a.ts': text })
    const call = caller(toolsOver(box, way))
    const answer = async (oldText: string) =>
      (await call('edit_file', { path: 'a.ts', oldText, newText: 'x' })).text
    expect(await answer('function b() {\n    return 1')).toBe(
      'oldText does not occur in "a.ts". Nothing was changed. It occurs with other white space, as these lines:\n5\tfunction b() {\n6\t  return 1',
    )
    expect(await answer('function b() {\n  return 7')).toBe(
      'oldText does not occur in "a.ts". Nothing was changed. Its first line occurs, and what follows differs:\n5\tfunction b() {\n6\t  return 1',
    )
    expect(await answer('nothing like it')).toBe(
      'oldText does not occur in "a.ts". Nothing was changed. Read the file, and copy the text from it without the numbers of the lines.',
    )
    expect(await answer('x')).toBe('oldText and newText are the same, so there is nothing to change.')
  })

  it('keeps the line ends and the byte order mark of a file', async () => {
    const box = filled({ 'w.txt': '\ufeffone\r\ntwo\r\nthree\r\n' })
    await caller(toolsOver(box, way))('edit_file', {
      path: 'w.txt',
      oldText: 'one\ntwo',
      newText: '1\n2\n2b',
    })
    expect(box.read('w.txt')).toBe('\ufeff1\r\n2\r\n2b\r\nthree\r\n')
  })

  it('does not overwrite what another process wrote meanwhile', async () => {
    const box = filled({ 'a.txt': 'one' })
    const tools = toolsOver(box, way)
    const edits = Array.from({ length: 8 }, (_, index) =>
      caller(tools)('edit_file', { path: 'a.txt', oldText: 'one', newText: `one, ${index}` }),
    )
    const endings = await Promise.all(edits)
    const done = endings.filter(({ outcome }) => outcome === 'success').length
    expect(box.read('a.txt').split(',').length - 1).toBe(done)
    for (const { outcome, text: why } of endings)
      expect(outcome === 'success' || /changed by another process|does not exist any more/.test(why)).toBe(
        true,
      )
  })
})

describe('what edit_file shows', () => {
  const edited = async (text: string, oldText: string, newText: string) => {
    const call = caller(toolsOver(filled({ 'a.txt': text })))
    return (await call('edit_file', { path: 'a.txt', oldText, newText, replaceAll: true })).text
  }
  const lines = (count: number): string => Array.from({ length: count }, (_, index) => `x${index}\n`).join('')

  it('names each line once, and twelve lines at most', async () => {
    expect(await edited('x x\nx\n', 'x', 'y')).toMatch(/^Edited "a\.txt": 3 replacements at lines 1, 2\.\n/)
    const twelve = '1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12'
    expect(await edited(lines(12), 'x', 'y')).toContain(` at lines ${twelve}.\n`)
    expect(await edited(lines(13), 'x', 'y')).toContain(` at lines ${twelve} ….\n`)
  })

  it('is the new text with a line before and after it, as far as there are any', async () => {
    const head = 'Edited "a.txt": 1 replacement at line'
    expect(await edited('a\nb\nc\nd\ne\n', 'c', 'C')).toBe(`${head} 3.\n2\tb\n3\tC\n4\td`)
    expect(await edited('a\nb\nc\n', 'a', 'A')).toBe(`${head} 1.\n1\tA\n2\tb\n3\tc`)
    expect(await edited('a\nb\nc\n', 'b\n', '')).toBe(`${head} 2.\n1\ta\n2\tc`)
  })

  it('is twelve lines at most, each with 300 characters at most', async () => {
    const shown = (count: number): string =>
      `1\tfirst\n${Array.from({ length: count }, (_, index) => `${index + 2}\tx${index}`).join('\n')}`
    const head = 'Edited "a.txt": 1 replacement at line 2.\n'
    const before = 'first\nold\n'
    expect(await edited(`${before}last\n`, 'old\n', lines(10))).toBe(`${head}${shown(10)}\n12\tlast`)
    expect(await edited(`${before}last\n`, 'old\n', lines(11))).toBe(`${head}${shown(11)}\n…`)
    expect(await edited('old', 'old', 'y'.repeat(300))).toContain(`\n1\t${'y'.repeat(300)}`)
    expect(await edited('old', 'old', 'y'.repeat(301))).toContain(`\n1\t${'y'.repeat(292)} … (cut)`)
  })
})

describe('a text that does not occur', () => {
  const answered = async (text: string, oldText: string) => {
    const call = caller(toolsOver(filled({ 'a.txt': text })))
    const { outcome, text: answer } = await call('edit_file', { path: 'a.txt', oldText, newText: '\0' })
    const start = 'oldText does not occur in "a.txt". Nothing was changed. '
    expect([outcome, answer.slice(0, start.length)]).toEqual(['failed', start])
    return answer.slice(start.length)
  }
  const nothing = 'Read the file, and copy the text from it without the numbers of the lines.'

  it('is shown where it occurs with other white space, from the first line to the last', async () => {
    const other = 'It occurs with other white space, as these lines:'
    expect(await answered('  a\n  b\n', 'a\nb')).toBe(`${other}\n1\t  a\n2\t  b`)
    expect(await answered('x\n  a\n\n b\n', 'a\n\nb')).toBe(`${other}\n2\t  a\n3\t\n4\t b`)
    expect(await answered('x\ny\n\ta', ' a')).toBe(`${other}\n3\t\ta`)
  })

  it('is shown where its first line alone occurs, which is not an empty one', async () => {
    const first = 'Its first line occurs, and what follows differs:'
    expect(await answered('\na\nb\nc\n', '\n\na\nx')).toBe(`${first}\n2\ta\n3\tb\n4\tc`)
    expect(await answered('y\n  a\nb\na\n', 'a\nx')).toBe(`${first}\n2\t  a\n3\tb`)
  })

  it('is not shown where it is of white space alone, or only part of a line', async () => {
    expect(await answered('a\n\n\nb\n', ' \n\t')).toBe(nothing)
    expect(await answered('one\n', 'on e')).toBe(nothing)
  })
})

describe('an edit', () => {
  it('may fill a file to the last byte that is written, and no further', async () => {
    const box = filled({ 'a.txt': 'ab' })
    const call = caller(toolsOver(box, 'by handle', { maxFileBytes: 4 }))
    const result = async (newText: string) =>
      (await call('edit_file', { path: 'a.txt', oldText: 'a', newText })).text
    const more =
      '"a.txt" would have more than 4 bytes, and at most that many are written. Nothing was changed.'
    expect(await result('1234')).toBe(more)
    expect(await result('éé')).toContain('has 5 bytes, and at most 4 are written')
    expect(box.read('a.txt')).toBe('ab')
    expect(await result('123')).toContain('1 replacement')
    expect(box.read('a.txt')).toBe('123b')
  })

  it.each(['ino', 'size', 'mtimeMs', 'ctimeMs'] as const)(
    'is refused where another process changed the %s of the file',
    async (fact) => {
      const box = filled({ 'a.txt': 'one' })
      const { lstatSync } = fs
      const spy = vi.spyOn(fs, 'lstatSync').mockImplementation((...given: Parameters<typeof lstatSync>) => {
        const stats = lstatSync(...given)
        return stats && Object.assign(stats, { [fact]: Number(stats[fact]) + 1 })
      })
      syncBuiltinESMExports()
      onTestFinished(() => {
        spy.mockRestore()
        syncBuiltinESMExports()
      })
      const input = { path: 'a.txt', oldText: 'one', newText: 'two' }
      expect(await caller(toolsOver(box))('edit_file', input)).toEqual({
        outcome: 'failed',
        text: '"a.txt" was changed by another process during the call. Nothing was changed: read it again.',
      })
      expect([box.read('a.txt'), fs.readdirSync(box.root)]).toEqual(['one', ['a.txt']])
    },
  )

  /** Has something happen when the new text is on the disk and has not taken the name of the file yet. */
  async function beforeNamed(box: Sandbox, act: () => void): Promise<void> {
    const handle = await open(box.root)
    const prototype = Object.getPrototypeOf(handle) as FileHandle
    await handle.close()
    const spy = vi.spyOn(prototype, 'sync').mockImplementation(async () => act())
    onTestFinished(() => spy.mockRestore())
  }

  it('is refused where another process removed the file meanwhile', async () => {
    const box = filled({ 'a.txt': 'one' })
    await beforeNamed(box, () => fs.rmSync(join(box.root, 'a.txt'), { force: true }))
    const input = { path: 'a.txt', oldText: 'one', newText: 'two' }
    expect(await caller(toolsOver(box))('edit_file', input)).toEqual({
      outcome: 'failed',
      text: '"a.txt" does not exist any more: it was changed during the call. Look again.',
    })
    expect(fs.readdirSync(box.root)).toEqual([])
  })

  it.each([
    ['edit_file', { path: 'a.txt', oldText: 'one', newText: 'two' }],
    ['write_file', { path: 'a.txt', content: 'two' }],
  ])('or a write is not made by %s once the call was cancelled', async (name, input) => {
    const box = filled({ 'a.txt': 'one' })
    const cancelled$ = new Subject<string>()
    await beforeNamed(box, () => cancelled$.next('enough'))
    const tool = toolsOver(box).find((each) => each.name === name)
    expect((await callTool(tool!, input, { cancelled$ })).outcome).toBe('cancelled')
    while (fs.readdirSync(box.root).length > 1) await new Promise((resolve) => setImmediate(resolve))
    expect(box.read('a.txt')).toBe('one')
  })

  it('keeps line breaks as they are written in oldText, in a file of Windows', async () => {
    const box = filled({ 'w.txt': 'a\r\nb\r\nc\r\n' })
    const call = caller(toolsOver(box))
    await call('edit_file', { path: 'w.txt', oldText: 'a\r\nb', newText: '1\n2' })
    expect(box.read('w.txt')).toBe('1\n2\r\nc\r\n')
    box.put({ 'w.txt': 'a\r\nb\r\n' })
    await call('edit_file', { path: 'w.txt', oldText: 'a\nb', newText: '1\r\n2\n3' })
    expect(box.read('w.txt')).toBe('1\r\n2\r\n3\r\n')
  })
})

describe('the file behind an edit', () => {
  const mixed = 'one\r\ntwo\nthree\r\nfour\n'

  it('given lines with different ends, when a text across them is replaced, then its lines keep the end of the first', async () => {
    const box = filled({ 'a.txt': mixed })
    const call = caller(toolsOver(box))
    const answer = await call('edit_file', { path: 'a.txt', oldText: 'one\ntwo\nthree', newText: '1\n2\n3' })
    expect(answer.outcome).toBe('success')
    expect(fs.readFileSync(join(box.root, 'a.txt'), 'utf8')).toBe('1\r\n2\r\n3\r\nfour\n')
    const again = await call('edit_file', { path: 'a.txt', oldText: '3\r\nfour', newText: 'x\r\ny' })
    expect(again.outcome).toBe('success')
    expect(fs.readFileSync(join(box.root, 'a.txt'), 'utf8')).toBe('1\r\n2\r\nx\r\ny\n')
  })

  it('given lines that end with LF, when the model writes CR LF, then the file keeps LF', async () => {
    const box = filled({ 'a.txt': 'one\ntwo\n' })
    await caller(toolsOver(box))('edit_file', { path: 'a.txt', oldText: 'one\r\ntwo', newText: '1\r\n2' })
    expect(fs.readFileSync(join(box.root, 'a.txt'), 'utf8')).toBe('1\n2\n')
  })

  it('given a text that overlaps itself, when it is edited once, then the edit is refused as not unique', async () => {
    const box = filled({ 'a.txt': 'xaaax' })
    const call = caller(toolsOver(box))
    const answer = await call('edit_file', { path: 'a.txt', oldText: 'aa', newText: 'b' })
    expect([answer.outcome, answer.text.slice(0, 21)]).toEqual(['failed', 'oldText occurs 2 time'])
    await call('edit_file', { path: 'a.txt', oldText: 'aa', newText: 'b', replaceAll: true })
    expect(fs.readFileSync(join(box.root, 'a.txt'), 'utf8')).toBe('xbax')
  })

  it('given any text and line ends, when a text without CRs is replaced everywhere, then it is as replaced without them', async () => {
    const piece = fc.constantFrom('a', 'b', '\n', '\r\n', '')
    const text = fc.array(piece, { maxLength: 30 }).map((pieces) => pieces.join(''))
    const sought = fc.array(fc.constantFrom('a', 'b', '\n'), { minLength: 1, maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(text, sought, async (given, parts) => {
        const input = { oldText: parts.join(''), newText: 'x\ny' }
        const { ranges, newTextFor } = await findText(given, input, new AbortController().signal)
        const edited = ranges.reduceRight(
          (each, range) => each.slice(0, range.start) + newTextFor(range) + each.slice(range.end),
          given,
        )
        const isExact = given.includes(input.oldText) && !hasWindowsLines(given)
        const plain = (each: string): string => each.replaceAll('\r\n', '\n')
        const expected = (isExact ? given : plain(given)).replaceAll(input.oldText, input.newText)
        expect(isExact ? edited : plain(edited)).toBe(expected)
      }),
    )
  })

  it('given a file that is marked as read-only, when it is edited or written, then it is refused and stays', async () => {
    const box = filled({ 'a.txt': 'old\n' })
    fs.chmodSync(join(box.root, 'a.txt'), 0o444)
    const call = caller(toolsOver(box))
    const edit = await call('edit_file', { path: 'a.txt', oldText: 'old', newText: 'new' })
    const write = await call('write_file', { path: 'a.txt', content: 'new\n' })
    expect([edit.outcome, write.outcome]).toEqual(['failed', 'failed'])
    expect(write.text).toContain('"a.txt" is read-only. Nothing was changed')
    expect(fs.readFileSync(join(box.root, 'a.txt'), 'utf8')).toBe('old\n')
  })

  // Only root may give a file to another user.
  it.runIf(process.getuid?.() === 0)(
    'given a file of another user, when it is edited and written, then owner and mode stay',
    async () => {
      const box = filled({ 'a.txt': 'old\n' })
      const path = join(box.root, 'a.txt')
      fs.chownSync(path, 65_534, 65_533)
      fs.chmodSync(path, 0o640)
      const call = caller(toolsOver(box))
      await call('edit_file', { path: 'a.txt', oldText: 'old', newText: 'new' })
      await call('write_file', { path: 'a.txt', content: 'newer\n' })
      expect(fs.readFileSync(path, 'utf8')).toBe('newer\n')
      const { uid, gid, mode } = fs.statSync(path)
      expect([uid, gid, mode & 0o777]).toEqual([65_534, 65_533, 0o640])
    },
  )

  it('given a file of ten million characters, when much of it is replaced, then timers have their turn', async () => {
    const box = filled({ 'a.txt': 'the quick brown fox\n'.repeat(500_000) })
    let turns = 0
    const count = (): void => {
      turns++
      next = setImmediate(count)
    }
    let next = setImmediate(count)
    const call = caller(toolsOver(box, 'by handle', { maxFileBytes: 50_000_000 }))
    const answer = await call('edit_file', {
      path: 'a.txt',
      oldText: 'fox',
      newText: 'dog',
      replaceAll: true,
    })
    clearImmediate(next)
    expect(answer.text).toContain('500000 replacements')
    expect(turns).toBeGreaterThan(20)
  })
})
