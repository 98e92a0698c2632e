import { execFile } from 'node:child_process'
import { globSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { renderTransitionDiagram } from '@tallystick/core/machine'

describe('ARCHITECTURE.md', () => {
  const page = new URL('../../ARCHITECTURE.md', import.meta.url)

  it('shows the diagram that the transition table gives', async () => {
    const shown = /```mermaid\n([\s\S]*?)\n```/.exec(await readFile(page, 'utf8'))?.[1]
    expect(shown).toBe(renderTransitionDiagram())
  })
})

const root = new URL('../..', import.meta.url)

/** Every source of the packages, examples and scripts as pages name it: without `packages/` and `src/`. */
const paths = globSync(
  [
    '*.config.ts',
    'packages/*/{src,test}/**/*.ts',
    'examples/**/*.ts',
    'clients/**/*.ts',
    'scripts/**/*.ts',
    'docs/*.md',
  ],
  {
    cwd: root,
    exclude: ['**/node_modules/**', '**/dist/**'],
  },
).map(shortened)

function shortened(path: string): string {
  return path.replace('packages/', '').replace(/(^|\/)src\//, '$1')
}

/** True if a page names a source: by the end of its path, or by a folder on it. */
function isNamed(source: string, path: string): boolean {
  return path.endsWith('/') ? `/${source}`.includes(`/${path}`) : `/${source}`.endsWith(`/${path}`)
}

describe.each([
  ['ARCHITECTURE.md', 40],
  ['CONTRIBUTING.md', 15],
  ['packages/ledger/src/sqlite/README.md', 5],
] as const)('%s', (name, least) => {
  it('names only files and folders that are there', async () => {
    const text = await readFile(new URL(name, root), 'utf8')
    // A name in capitals stands for the reader's own, and a star for several files.
    const named = [...text.matchAll(/`([\w./-]+(?:\.ts|\/))`/g)].flatMap(([, path = '']) =>
      /[A-Z]{3}|my-store/.test(path) ? [] : [shortened(path)],
    )
    expect(named.length).toBeGreaterThan(least)
    expect(named.filter((path) => !paths.some((each) => isNamed(each, path)))).toEqual([])
  })
})

describe('the machine', () => {
  it('loads no library of streams: only digests and schemas', async () => {
    const program = `import { registerHooks } from 'node:module'
const packages = new Set()
registerHooks({
  resolve(name, context, next) {
    if (!/^[./]|^file:|^node:/.test(name)) packages.add(name)
    return next(name, context)
  },
})
await import(process.argv[1])
console.log(JSON.stringify([...packages]))`
    const machine = new URL('packages/core/src/machine.ts', root).href
    const words = ['--input-type=module', '--eval', program, machine]
    const { stdout } = await promisify(execFile)(process.execPath, words)
    const loaded = JSON.parse(stdout) as readonly string[]
    expect(loaded).toContain('@noble/hashes/sha2.js')
    expect(loaded.filter((name) => !/^(@noble\/hashes\/|zod$|croner$)/.test(name))).toEqual([])
  })
})
