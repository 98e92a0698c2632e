import { chmodSync, linkSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { Subject } from 'rxjs'
import { callTool } from '@tallystick/testkit'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { caller, pictureOf, sandbox, type Sandbox, toolsOver, ways } from './sandbox.ts'

function filled(files: Readonly<Record<string, string>>): Sandbox {
  const box = sandbox()
  onTestFinished(() => box.remove())
  box.put(files)
  return box
}

describe.each(ways)('write_file (%s)', (way) => {
  it('creates a file with the folders on its way, and replaces one', async () => {
    const box = filled({})
    const call = caller(toolsOver(box, way))
    expect(await call('write_file', { path: 'a/b/c.txt', content: 'one\ntwo\n' })).toEqual({
      outcome: 'success',
      text: 'Created "a/b/c.txt" (2 lines, 8 bytes).',
    })
    expect((await call('write_file', { path: 'a/b/c.txt', content: 'é' })).text).toBe(
      'Replaced "a/b/c.txt" (1 line, 2 bytes; before 8 bytes).',
    )
    expect([box.read('a/b/c.txt'), readdirSync(join(box.root, 'a/b'))]).toEqual(['é', ['c.txt']])
  })

  it('puts the text on the disk before it has its name, and then the name', async () => {
    const box = filled({ 'a.txt': 'old' })
    const handle = await open(box.root)
    const prototype = Object.getPrototypeOf(handle) as FileHandle
    await handle.close()
    const synced: string[] = []
    const sync = vi.spyOn(prototype, 'sync').mockImplementation(async function (this: FileHandle) {
      synced.push(`${(await this.stat()).isFile() ? 'text' : 'folder'}: ${box.read('a.txt')}`)
    })
    onTestFinished(() => sync.mockRestore())
    await caller(toolsOver(box, way))('write_file', { path: 'a.txt', content: 'new' })
    expect(synced).toEqual(['text: old', 'folder: new'])
  })

  it('keeps the permissions of what it replaces, and writes to no other name of it', async () => {
    const box = filled({ 'run.sh': 'old' })
    chmodSync(join(box.root, 'run.sh'), 0o750)
    linkSync(join(box.root, 'run.sh'), join(box.outside, 'same.sh'))
    const before = pictureOf(box.outside)
    await caller(toolsOver(box, way))('write_file', { path: 'run.sh', content: 'new' })
    expect([box.read('run.sh'), statSync(join(box.root, 'run.sh')).mode & 0o777]).toEqual(['new', 0o750])
    expect(pictureOf(box.outside)).toEqual(before)
  })

  it('follows a link however its target is written', async () => {
    const box = filled({ 'real/a.txt': 'old' })
    symlinkSync('.//real/./a.txt', join(box.root, 'b.txt'))
    symlinkSync('real/', join(box.root, 'short'))
    const call = caller(toolsOver(box, way))
    expect((await call('write_file', { path: 'b.txt', content: '1' })).text).toMatch(
      /^Replaced "real\/a\.txt"/,
    )
    expect((await call('write_file', { path: 'short/c.txt', content: '2' })).text).toMatch(
      /^Created "real\/c\.txt"/,
    )
  })

  it('writes to what a link inside the root leads to, and leaves the link', async () => {
    const box = filled({ 'real/a.txt': 'old' })
    symlinkSync('real', join(box.root, 'short'))
    symlinkSync(join(box.root, 'real/a.txt'), join(box.root, 'b.txt'))
    const call = caller(toolsOver(box, way))
    expect((await call('write_file', { path: 'b.txt', content: '1' })).text).toMatch(
      /^Replaced "real\/a\.txt"/,
    )
    expect((await call('write_file', { path: 'short/../real/new.txt', content: '2' })).text).toMatch(
      /^Created "real\/new\.txt"/,
    )
    expect(pictureOf(box.root)).toEqual([
      ...[
        `b.txt -> ${join(box.root, 'real/a.txt')}`,
        'real/',
        'real/a.txt 100644 1',
        'real/new.txt 100644 2',
        'short -> real',
      ],
    ])
  })

  it('refuses what is too long, no text, a folder, hidden or ignored, and changes nothing', async () => {
    const box = filled({ 'dir/x': '', '.env': 'KEY', 'node_modules/m.js': '' })
    const before = pictureOf(box.folder)
    const call = caller(toolsOver(box, way))
    const refusals: readonly (readonly [string, string, string])[] = [
      ['big.txt', 'x'.repeat(10_000_001), 'has 10000001 bytes, and at most 10000000 are written'],
      ['nul.txt', 'a\0b', 'holds a NUL or half of a surrogate pair'],
      ['half.txt', '\ud800', 'holds a NUL or half of a surrogate pair'],
      ['dir', 'x', 'is a folder, and a file is needed'],
      ['.', 'x', 'is a folder, and a file is needed'],
      ['.env', 'x', '".env" is hidden'],
      ['.git/hooks/pre-commit', 'x', '".git" is hidden'],
      ['node_modules/new/x.js', 'x', '"node_modules" is ignored'],
      ['.tallystick-0.tmp', 'x', 'is hidden'],
      ['dir/x/y', 'x', '"dir/x" is not a folder'],
      [`${'n'.repeat(300)}.txt`, 'x', 'has a name that is too long'],
    ]
    for (const [path, content, why] of refusals) {
      const { outcome, text } = await call('write_file', { path, content })
      expect([path, outcome, text.includes(why) ? why : text]).toEqual([path, 'failed', why])
    }
    expect(pictureOf(box.folder)).toEqual(before)
  })

  it('leaves the file as it was where the call is cancelled before', async () => {
    const box = filled({ 'a.txt': 'old' })
    const cancelled$ = new Subject<string>()
    const tool = toolsOver(box, way).find(({ name }) => name === 'write_file')
    const ending = callTool(tool!, { path: 'a.txt', content: 'new'.repeat(1_000) }, { cancelled$ })
    await new Promise((resolve) => setImmediate(resolve))
    cancelled$.next('enough')
    const { outcome } = await ending
    expect([outcome, pictureOf(box.root)]).toEqual(['cancelled', ['a.txt 100644 old']])
  })
})

describe.each(ways)('move_file (%s)', (way) => {
  it('moves files and folders to paths that are free', async () => {
    const box = filled({ 'a.txt': '1', 'dir/b.txt': '2' })
    const call = caller(toolsOver(box, way))
    expect((await call('move_file', { from: 'a.txt', to: 'new/c.txt' })).text).toBe(
      'Moved "a.txt" to "new/c.txt".',
    )
    expect((await call('move_file', { from: 'dir/', to: 'new/dir' })).text).toBe('Moved "dir" to "new/dir".')
    expect(pictureOf(box.root)).toEqual(['new/', 'new/c.txt 100644 1', 'new/dir/', 'new/dir/b.txt 100644 2'])
  })

  it('replaces nothing, moves no link, nothing hidden, and no folder into itself', async () => {
    const box = filled({ 'a.txt': '1', 'b.txt': '2', 'dir/c': '', '.env': 'KEY' })
    symlinkSync('a.txt', join(box.root, 'link'))
    const before = pictureOf(box.folder)
    const call = caller(toolsOver(box, way))
    const refusals: readonly (readonly [string, string, string])[] = [
      ['a.txt', 'b.txt', '"b.txt" exists already'],
      ['a.txt', 'dir', '"dir" exists already'],
      ['a.txt', 'link', '"a.txt" exists already'],
      ['none', 'x', '"none" does not exist'],
      ['link', 'x', '"link" is a link, and only files and folders are moved.'],
      ['.env', 'x', '".env" is hidden'],
      ['a.txt', '.x', '".x" is hidden'],
      ['.', 'x', 'ends with no name'],
      ['dir/..', 'x', 'ends with no name'],
      ['dir', 'dir/x', '"dir" cannot be used: the system refuses this name or this change'],
      ['a.txt', '../x', 'leads outside the root folder'],
      ['../outside/a.txt', 'x', 'leads outside the root folder'],
    ]
    for (const [from, to, why] of refusals) {
      const { outcome, text } = await call('move_file', { from, to })
      expect([from, to, outcome, text.includes(why) ? why : text]).toEqual([from, to, 'failed', why])
    }
    expect(pictureOf(box.folder)).toEqual(before)
  })

  it('does not show what is ignored by moving the folder around it', async () => {
    const box = filled({ 'config/local.json': 'KEY', 'config/open.json': '', 'lib/node_modules/m.js': '' })
    const call = caller(toolsOver(box, way, { ignore: ['config/local.json', 'node_modules/'] }))
    expect(await call('move_file', { from: 'config', to: 'shown' })).toEqual({
      outcome: 'failed',
      text: '"config" holds files that are ignored there and would not be at the new path. Nothing was moved.',
    })
    expect((await call('move_file', { from: 'lib', to: 'lib2' })).outcome).toBe('success')
    mkdirSync(join(box.root, 'plain'))
    writeFileSync(join(box.root, 'plain/x'), '')
    expect((await call('move_file', { from: 'plain', to: 'config/plain' })).outcome).toBe('success')
  })
})
