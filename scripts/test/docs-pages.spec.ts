// A reader can follow every page of docs/ word for word: its programs run and have right types, and its commands print what
// the page says.
import { globSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { runCommandLine } from '@tallystick/cli'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { compilePages } from '../pages/compile-pages.ts'
import { readBlocks, knownInfos, readSteps, type Step } from '../pages/page.ts'
import { playPage } from '../pages/play-page.ts'
import { makeFolder } from '../pages/reader-folder.ts'
import { startVendor, type Vendor } from '../pages/vendor.ts'

const repository = join(import.meta.dirname, '../..')
const pages = readdirSync(join(repository, 'docs'))
  .filter((name) => name.endsWith('.md'))
  .map((name) => ({ path: `docs/${name}`, text: readFileSync(join(repository, 'docs', name), 'utf8') }))

let vendor: Vendor
const folders: string[] = []
beforeAll(async () => {
  vendor = await startVendor()
})
afterAll(() => {
  vendor.close()
  for (const folder of folders) rmSync(folder, { recursive: true })
})

/** True for a block that is a program which runs on its page. */
const isCode = ({ kind }: Step): boolean => kind === 'program' || kind === 'save'
/** The errors of the compiler for all pages, compiled when a test first asks. */
let errorsOfTypes: ReturnType<typeof compilePages> | undefined

const withCode = pages.filter(({ text }) => readSteps(text).some(isCode))

describe.each(pages)('$path', ({ text }) => {
  it('has code blocks of known kinds, and sketches of other libraries only', () => {
    expect(readBlocks(text).filter(({ info }) => !knownInfos.includes(info))).toEqual([])
    const sketches = readBlocks(text).filter(({ info }) => info === 'ts sketch')
    expect(sketches.filter((block) => block.text.includes('@tallystick/'))).toEqual([])
  })
})

describe.each(withCode)('$path', ({ path, text }) => {
  const steps = readSteps(text)

  it('can be followed step by step, and prints what it says', { timeout: 240_000 }, async () => {
    const folder = makeFolder()
    folders.push(folder)
    expect(await playPage(steps, folder, vendor.env)).toEqual([])
  })

  it('has programs without an error of types', { timeout: 240_000 }, async () => {
    errorsOfTypes ??= compilePages(withCode)
    expect((await errorsOfTypes).get(path)).toEqual([])
  })
})

it.each(['docs/README.md', 'llms.txt'])('%s lists every page and package', (path) => {
  const list = readFileSync(join(repository, path), 'utf8')
  const links = [...list.matchAll(/\]\(([^)#]+)/g)].map(([, link = '']) => join(dirname(path), link))
  const readmes = globSync('packages/*/README.md', { cwd: repository })
  const wanted = [...pages.map((page) => page.path), ...readmes]
  expect(wanted.filter((page) => page !== path && !links.includes(page))).toEqual([])
})

describe('commands that the pages name', () => {
  const named = pages.flatMap(({ text }) => [...text.matchAll(/\btallystick ([a-z]+)\b([^`\n]*)/g)])
  const verbs = new Set(named.map(([, verb = '']) => verb))

  it.each([...verbs])('has a verb %s, with every option that is named', async (verb) => {
    const { stdin, stderr } = process
    const out = new PassThrough()
    const host = { env: {}, cwd: () => repository, stdin, stdout: out as never, stderr }
    await runCommandLine([verb, '--help'], host)
    out.end()
    const stdout = await text(out)
    const options = named
      .filter(([, of]) => of === verb)
      .flatMap(([, , rest = '']) => rest.match(/--[a-z-]+/g) ?? [])
    expect(stdout).toContain(`Usage: tallystick ${verb} `)
    expect(options.filter((option) => !new RegExp(`^ +(?:-\\w, )?${option}\\b`, 'm').test(stdout))).toEqual(
      [],
    )
  })
})
