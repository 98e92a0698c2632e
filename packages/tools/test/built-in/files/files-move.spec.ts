import fs, { existsSync, lstatSync, mkdirSync, writeFileSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import type { Tool } from '@tallystick/core'
import { callTool } from '@tallystick/testkit'
import { filesTools } from '@tallystick/tools/files'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createNameRules } from '../../../src/built-in/files/names.ts'
import { openRoot } from '../../../src/built-in/files/root.ts'
import { assertNothingUncovered, moveFile } from '../../../src/built-in/files/write.ts'
import type { ToolContext } from '../../../src/define/run-tool.ts'
import { caller, pictureOf, sandbox, type Sandbox, toolsOver } from './sandbox.ts'

function filled(files: Readonly<Record<string, string>>): Sandbox {
  const box = sandbox()
  onTestFinished(() => box.remove())
  box.put(files)
  return box
}

/** What a move in a box ends in. */
const moves = async (box: Sandbox, from: string, to: string, ignore: readonly string[] = []) =>
  await caller(toolsOver(box, 'by handle', { ignore }))('move_file', { from, to })

/** A folder `full` with three entries, and what moves it where no more than so many may be looked at. */
async function moving(maxVisited: number): Promise<{ outcome: string; text: string; root: string }> {
  const box = sandbox()
  onTestFinished(() => box.remove())
  box.put({ 'full/a.txt': 'a', 'full/inner/b.txt': 'b' })
  const tools: readonly Tool[] = filesTools({ root: box.root, write: true, maxVisited })
  const move = tools.find(({ name }) => name === 'move_file')
  if (move === undefined) throw new Error('there is no tool that moves')
  const { outcome, text } = await callTool(move, { from: 'full', to: 'other' })
  return { outcome, text, root: box.root }
}

describe('move_file of a folder', () => {
  it('given as many entries as may be looked at, when it is moved, then all of it goes', async () => {
    const { outcome, root } = await moving(3)
    expect(outcome).toBe('success')
    expect(existsSync(join(root, 'other/inner/b.txt'))).toBe(true)
  })

  it('given one more, when it is moved, then nothing is, and the model reads what to do', async () => {
    const { outcome, text, root } = await moving(2)
    expect({ outcome, text }).toEqual({
      outcome: 'failed',
      text: '"full" holds more than 2 entries, too many to move. Move folders within it.',
    })
    expect(pictureOf(root).filter((line) => line.startsWith('full'))).toHaveLength(4)
  })
})

describe('move_file', () => {
  it('names what it moves from the root, and what is taken already', async () => {
    const box = filled({ 'in/dir/a.txt': '1', 'in/b.txt': '2', 'c/x': '' })
    const taken = (path: string) => `"${path}" exists already. Nothing was moved: name a path that is free.`
    expect((await moves(box, 'in/dir/a.txt', 'in/b.txt')).text).toBe(taken('in/b.txt'))
    expect((await moves(box, 'in/dir', 'c')).text).toBe(taken('c'))
    expect((await moves(box, 'in/dir/none', 'd')).text).toBe(
      '"in/dir/none" does not exist. Nothing was moved.',
    )
    expect((await moves(box, 'in/b.txt/x', 'd')).text).toBe('"in/b.txt" is not a folder.')
    expect((await moves(box, 'in/dir/a.txt', 'd.txt')).text).toBe('Moved "in/dir/a.txt" to "d.txt".')
    expect((await moves(box, 'in/dir', 'e/f')).text).toBe('Moved "in/dir" to "e/f".')
    expect(pictureOf(box.root).map((line) => line.split(' ')[0])).toEqual([
      'c/',
      'c/x',
      'd.txt',
      'e/',
      'e/f/',
      'in/',
      'in/b.txt',
    ])
  })

  it('moves nothing that is hidden or ignored, and to no such name', async () => {
    const box = filled({ 'dist/a': '', 'dir/a': '', file: '', 'lib/dist': 'no folder' })
    const ignore = ['dist/']
    const text = (path: string, why: string) => `"${path}" is ${why}: this tool neither shows nor changes it.`
    expect((await moves(box, '.none', 'x', ignore)).text).toBe(text('.none', 'hidden'))
    expect((await moves(box, 'dist', 'x', ignore)).text).toBe(text('dist', 'ignored'))
    expect((await moves(box, 'dir', 'file/../new/dist', ignore)).outcome).toBe('failed')
    expect((await moves(box, 'dir', 'new/dist', ignore)).text).toBe(text('new/dist', 'ignored'))
    // The glob ignores folders only.
    expect((await moves(box, 'lib/dist', 'lib/dist2', ignore)).outcome).toBe('success')
    expect((await moves(box, 'file', 'lib/dist', ignore)).outcome).toBe('success')
  })

  it('looks at what a folder holds by its whole path, and not into what is ignored at both paths', async () => {
    const same = filled({ 'in/config/key': '' })
    expect((await moves(same, 'in/config', 'out/shown', ['/in/config/key', '/out/shown/key'])).outcome).toBe(
      'success',
    )
    const uncovered = filled({ 'in/config/key': '' })
    expect(await moves(uncovered, 'in/config', 'shown', ['/in/config/key', '/key'])).toEqual({
      outcome: 'failed',
      text: '"in/config" holds files that are ignored there and would not be at the new path. Nothing was moved.',
    })
    const deep = filled({ 'lib/node_modules/x': '' })
    expect((await moves(deep, 'lib', 'lib2', ['node_modules/', '/lib/node_modules/x'])).outcome).toBe(
      'success',
    )
  })

  it('makes the names in both folders durable', async () => {
    const box = filled({ 'in/a.txt': '1', 'out/x': '' })
    const handle = await open(box.root)
    const prototype = Object.getPrototypeOf(handle) as FileHandle
    await handle.close()
    const synced: number[] = []
    const sync = vi.spyOn(prototype, 'sync').mockImplementation(async function (this: FileHandle) {
      synced.push((await this.stat()).ino)
    })
    onTestFinished(() => sync.mockRestore())
    await moves(box, 'in/a.txt', 'out/a.txt')
    const folders = ['in', 'out'].map((name) => lstatSync(join(box.root, name)).ino)
    expect(new Set(synced)).toEqual(new Set(folders))
  })

  /** Has another process act, or the system refuse, when a file is to get its second name. */
  function whenLinked(act: () => void): void {
    const { link } = fs.promises
    const spy = vi.spyOn(fs.promises, 'link').mockImplementation(async (...paths) => {
      act()
      await link(...paths)
    })
    syncBuiltinESMExports()
    onTestFinished(() => {
      spy.mockRestore()
      syncBuiltinESMExports()
    })
  }

  it('replaces no file that another process makes at that moment', async () => {
    const box = filled({ 'a.txt': 'mine' })
    whenLinked(() => writeFileSync(join(box.root, 'b.txt'), 'theirs'))
    expect((await moves(box, 'a.txt', 'b.txt')).text).toBe('"b.txt" exists already. Nothing was moved.')
    expect([box.read('a.txt'), box.read('b.txt')]).toEqual(['mine', 'theirs'])
  })

  it.each([
    ...['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].map(
      (code) => [code, 'Moved "a.txt" to "b.txt".'] as const,
    ),
    ['EIO', '"a.txt" cannot be read: the disk reports a fault.'] as const,
  ])('of a file system that refuses a second name with %s ends with %j', async (code, text) => {
    const box = filled({ 'a.txt': '1' })
    whenLinked(() => {
      throw Object.assign(new Error('refused'), { code })
    })
    expect((await moves(box, 'a.txt', 'b.txt')).text).toBe(text)
    expect(fs.readdirSync(box.root)).toEqual([code === 'EIO' ? 'a.txt' : 'b.txt'])
  })

  it('moves nothing once the call has ended', async () => {
    const box = filled({ 'dir/a.txt': '1', 'b.txt': '2' })
    mkdirSync(join(box.root, 'empty'))
    const root = openRoot('filesTools', box.root, createNameRules('filesTools', [], false))
    const rules = { root, maxBytes: 1_000, maxFileBytes: 1_000, maxEntries: 10, maxVisited: 10 }
    const context = { signal: AbortSignal.abort(new Error('enough')) } as ToolContext
    const before = pictureOf(box.root)
    for (const from of ['b.txt', 'empty', 'dir'])
      await expect(moveFile(rules, { from, to: 'to' }, context)).rejects.toThrow('enough')
    expect(pictureOf(box.root)).toEqual(before)
    const folder = { path: [], at: (name: string) => join(box.root, name), close: async () => {} }
    await expect(
      assertNothingUncovered(rules, { folder, name: 'dir' }, ['to'], context.signal),
    ).rejects.toThrow('enough')
  })
})
