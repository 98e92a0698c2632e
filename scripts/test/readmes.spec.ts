// Every program of every README runs as it is pasted, with what the README's own line installs and nothing else.
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readSteps } from '../pages/page.ts'
import { playPage } from '../pages/play-page.ts'
import { install, makeFolder } from '../pages/reader-folder.ts'
import { startVendor, type Vendor } from '../pages/vendor.ts'

const repository = join(import.meta.dirname, '../..')
const packages = readdirSync(join(repository, 'packages'))
const readmes = ['README.md', ...packages.map((name) => `packages/${name}/README.md`)]
const run = promisify(execFile)

let vendor: Vendor
const folders: string[] = []
beforeAll(async () => {
  vendor = await startVendor()
})
afterAll(() => {
  vendor.close()
  for (const folder of folders) rmSync(folder, { recursive: true })
})

describe('the README of the repository', () => {
  it('shows what `tallystick show` prints of the run of its program', async () => {
    const text = readFileSync(join(repository, 'README.md'), 'utf8')
    const program = readSteps(text).find(({ kind }) => kind === 'program')
    const show = readSteps(text).find((step) => step.kind === 'commands' && step.prints !== undefined)
    expect(show).toMatchObject({ text: 'npx tallystick show runs.db latest' })
    const folder = makeFolder()
    folders.push(folder)
    const [, line = ''] = /```sh\nnpm install (.+)\n```/.exec(text) ?? []
    install(folder, [...line.split(' '), '@tallystick/cli'])
    expect(await playPage([program!, show!], folder, vendor.env)).toEqual([])
  })
})

describe.each(readmes)('%s', (path) => {
  const text = readFileSync(join(repository, path), 'utf8')
  const programs = [...text.matchAll(/```(?:ts|js)\n(.*?)```/gs)].map(([, program = '']) => program)
  const [, line = ''] = /```sh\nnpm install ([^#\n]+?)(?: #.*)?\n```/.exec(text) ?? []

  it('says what to install before its first program', () => {
    expect(line).toContain('@tallystick/core')
    expect(text.indexOf('npm install ')).toBeLessThan(text.indexOf('```ts'))
  })

  it('names every entry of its package as it is imported', () => {
    if (path === 'README.md') return
    const manifest = readFileSync(join(repository, path, '../package.json'), 'utf8')
    const { name, exports } = JSON.parse(manifest) as { name: string; exports: Record<string, string> }
    const entries = Object.keys(exports).filter((entry) => entry !== './package.json')
    expect(entries.map((entry) => name + entry.slice(1)).filter((entry) => !text.includes(entry))).toEqual([])
  })

  it('has no link that a page of the registry cannot follow', () => {
    // The page of the repository alone is not published.
    if (path === 'README.md') return
    const links = [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, link = '']) => link)
    expect(links.filter((link) => !/^(https:|#)/.test(link))).toEqual([])
  })

  it('has programs that run one after the other as they are pasted', async () => {
    expect(programs.length).toBeGreaterThan(0)
    const folder = makeFolder()
    folders.push(folder)
    install(folder, line.split(' '))
    const env = { ...process.env, ...vendor.env }
    for (const [index, program] of programs.entries()) {
      const file = join(folder, `program-${index + 1}.ts`)
      writeFileSync(file, program)
      const { stderr, stdout } = await run(process.execPath, ['--no-warnings', file], { cwd: folder, env })
      expect({ program, stderr }).toEqual({ program, stderr: '' })
      expect(stdout).not.toMatch(/model_failed|Error/)
    }
  })
})
