import { fork } from 'node:child_process'
import { mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { effort } from '../../../../../scripts/testing/effort.ts'
import { openByHandle, openByName, NotAFileError, OutsideError } from '../../../src/built-in/files/root.ts'
import { putFile } from '../../../src/built-in/files/write.ts'
import {
  caller,
  type Call,
  openFiles,
  pictureOf,
  sandbox,
  type Sandbox,
  secret,
  toolsOver,
  ways,
} from './sandbox.ts'

function boxed(): Sandbox {
  const box = sandbox()
  onTestFinished(() => box.remove())
  return box
}

/** A call of every tool about a path. */
async function useAll(call: Call, path: string): Promise<readonly string[]> {
  const inputs = [
    ['list_files', { path }],
    ['find_files', { glob: '**', path }],
    ['search_files', { text: secret.slice(0, 4), path }],
    ['read_file', { path }],
    ['write_file', { path, content: 'written' }],
    ['edit_file', { path, oldText: secret, newText: 'edited' }],
    ['move_file', { from: path, to: `moved-${path.length}` }],
    ['move_file', { from: 'own.txt', to: path }],
  ] as const
  const texts: string[] = []
  for (const [name, input] of inputs) texts.push((await call(name, input)).text)
  return texts
}

describe.each(ways)('nothing outside the root is reached (%s)', (way) => {
  it('by links, whatever they are made of', async () => {
    const box = boxed()
    box.put({ 'own.txt': 'own', 'deep/er/x': '' })
    const links: Readonly<Record<string, string>> = {
      absolute: join(box.outside, 'secret.txt'),
      folder: box.outside,
      relative: '../outside',
      'deep/er/far': '../../../outside/inner',
      loop: 'loop',
      ping: 'pong',
      pong: 'ping',
      chain: 'folder',
      root: '/',
      dangling: join(box.outside, 'new.txt'),
      beside: `${box.root}-2/x`,
      'up-and-in': '../root/../outside',
    }
    mkdirSync(`${box.root}-2`)
    for (const [path, target] of Object.entries(links)) symlinkSync(target, join(box.root, path))
    const before = pictureOf(box.folder)
    const call = caller(toolsOver(box, way))
    for (const link of Object.keys(links)) {
      for (const path of [link, `${link}/secret.txt`, `${link}/inner/../../outside/a.txt`]) {
        for (const text of await useAll(call, path)) expect(text).not.toContain(secret)
        expect(pictureOf(box.folder)).toEqual(before)
      }
    }
  })

  it('by a root that has become a link since', async () => {
    const box = boxed()
    box.put({ 'own.txt': 'own' })
    const call = caller(toolsOver(box, way))
    renameSync(box.root, `${box.root}-before`)
    symlinkSync(box.outside, box.root)
    const before = pictureOf(box.outside)
    for (const text of await useAll(call, 'secret.txt')) expect(text).not.toContain(secret)
    expect(pictureOf(box.outside)).toEqual(before)
  })

  it('and links inside it are followed, up and down', async () => {
    const box = boxed()
    box.put({ 'a/b/c.txt': 'here' })
    symlinkSync('../a/b', join(box.root, 'a/again'))
    symlinkSync(join(box.root, 'a'), join(box.root, 'absolute'))
    const call = caller(toolsOver(box, way))
    for (const path of [
      'a/again/c.txt',
      'absolute/b/c.txt',
      'absolute/again/../b/c.txt',
      'a/b/../../a/b/c.txt',
    ])
      expect((await call('read_file', { path })).text).toMatch(/^"a\/b\/c\.txt": 1 line .*\n1\there$/s)
  })

  it('and a link to what is hidden or ignored shows as little as its path', async () => {
    const box = boxed()
    box.put({ '.env': secret, 'node_modules/m.js': secret })
    symlinkSync('.env', join(box.root, 'open'))
    symlinkSync('node_modules', join(box.root, 'lib'))
    const call = caller(toolsOver(box, way))
    for (const path of ['open', 'lib', 'lib/m.js', './/.env', 'lib/../.env'])
      for (const text of await useAll(call, path)) expect(text).not.toContain(secret)
  })
})

describe('by name, where a folder becomes a link to the outside after it was looked up', () => {
  it('nothing is read from there, and no text is written there', async () => {
    const box = boxed()
    box.put({ 'dir/a.txt': 'inside' })
    const access = openByName(box.root)
    const folder = await access.enter(await access.openRoot(), 'dir')
    renameSync(join(box.root, 'dir'), join(box.root, 'was'))
    symlinkSync(box.outside, join(box.root, 'dir'))
    const before = pictureOf(box.outside)
    const open = openFiles()
    await expect(access.openFile(folder, 'a.txt')).rejects.toThrow(OutsideError)
    expect(openFiles()).toBeLessThanOrEqual(open)
    const text = { folder, name: 'a.txt', text: 'written', call: { idempotencyKey: 'k', attempt: 1 } }
    await expect(putFile(access, text, () => {})).rejects.toThrow(OutsideError)
    await expect(access.enter(await access.openRoot(), 'dir')).rejects.toThrow(NotAFileError)
    expect(pictureOf(box.outside)).toEqual(before)
  })
})

// The other systems cannot hold a folder open while they look a name up in it.
describe.runIf(process.platform === 'linux')(
  'while another process swaps a folder for a link to the outside',
  () => {
    async function swapping(box: Sandbox): Promise<void> {
      mkdirSync(join(box.root, 'swapped'))
      box.put({ 'swapped/a.txt': 'inside', 'swapped/inner/a.txt': 'inside', 'own.txt': 'own' })
      const swapper = fork(new URL('./swapper.mjs', import.meta.url), [box.root, box.outside], {
        execArgv: [],
        env: {},
      })
      await new Promise((resolve) => void swapper.once('message', resolve))
      onTestFinished(async () => {
        const gone = new Promise((resolve) => void swapper.once('exit', resolve))
        swapper.kill('SIGKILL')
        await gone
      })
    }

    it('nothing outside is read or written', async () => {
      const box = boxed()
      await swapping(box)
      const before = pictureOf(box.outside)
      const call = caller(toolsOver(box))
      const outcomes = new Map<string, number>()
      for (let time = 0; time < effort({ quick: 25, thorough: 200 }); time++) {
        for (const path of ['swapped/a.txt', 'swapped/inner/a.txt', 'swapped']) {
          const texts = await useAll(call, path)
          for (const text of texts) expect(text).not.toContain(secret)
          const [, , , read = ''] = texts
          const kind =
            /leads outside|inside|does not exist|changed during|replaced by a link|written|is a folder/.exec(
              read,
            )?.[0] ?? read
          outcomes.set(kind, (outcomes.get(kind) ?? 0) + 1)
        }
        // The moves of this round, undone.
        for (const name of ['moved-13', 'moved-19', 'moved-7'])
          rmSync(join(box.root, name), { recursive: true, force: true })
        box.put({ 'own.txt': 'own' })
      }
      expect(pictureOf(box.outside)).toEqual(before)
      // Both were met, so that the race took place.
      expect([...outcomes.keys()]).toEqual(expect.arrayContaining(['leads outside']))
    })

    it('a folder that is held open leads to what it was opened as, and to nothing outside', async () => {
      const box = boxed()
      box.put({ 'dir/a.txt': 'inside' })
      const before = openFiles()
      const access = openByHandle(box.root)
      const root = await access.openRoot()
      const folder = await access.enter(root, 'dir')
      renameSync(join(box.root, 'dir'), join(box.root, 'was'))
      symlinkSync(box.outside, join(box.root, 'dir'))
      const file = await access.openFile(folder, 'a.txt')
      expect(await file.readFile('utf8')).toBe('inside')
      await expect(access.enter(root, 'dir')).rejects.toThrow(/ENOTDIR|ELOOP/)
      await expect(access.openFile(root, 'dir')).rejects.toThrow(NotAFileError)
      // It was moved out of the root: nothing in it may be used any more.
      renameSync(join(box.root, 'was'), join(box.outside, 'was'))
      await expect(access.openFile(folder, 'a.txt')).rejects.toThrow(OutsideError)
      await expect(access.assertInside(file, folder, 'a.txt')).rejects.toThrow(OutsideError)
      for (const open of [file, folder, root]) await open.close()
      expect(openFiles()).toBeLessThanOrEqual(before)
    })
  },
)
