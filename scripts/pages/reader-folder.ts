// A folder such as a reader of a page makes: with the packages that the page installs, and no others.
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const repository = join(import.meta.dirname, '../..')
const packages = readdirSync(join(repository, 'packages'))
/** Where the packages of this repository come from: their sources, or a folder of packages as they are published. */
const published = process.env['TALLYSTICK_PUBLISHED']
const sources = published === undefined ? join(repository, 'packages') : join(published, '@tallystick')

/** Makes an empty folder for a program of ECMAScript modules. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'page-'))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  return folder
}

/** Puts packages into a folder, with their commands, as a package manager does. */
export function install(folder: string, names: readonly string[]): void {
  for (const name of names) {
    const link = join(folder, 'node_modules', name)
    if (existsSync(link)) continue
    const home = findHome(name)
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(home, link)
    putCommands(folder, home)
  }
}

function findHome(name: string): string {
  const own = /^@tallystick\/(.+)$/.exec(name)?.[1]
  if (own !== undefined) return join(sources, own)
  const roots = [repository, ...packages.map((each) => join(repository, 'packages', each))]
  const found = roots.map((root) => join(root, 'node_modules', name)).find((home) => existsSync(home))
  if (found === undefined) throw new Error(`No package of this repository depends on ${name}.`)
  return realpathSync(found)
}

function putCommands(folder: string, home: string): void {
  const manifest: unknown = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'))
  const { bin } = manifest as { readonly bin?: string | Readonly<Record<string, string>> }
  if (typeof bin !== 'object') return
  mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true })
  for (const [command, file] of Object.entries(bin)) {
    const line = `#!/bin/sh\nexec node --no-warnings '${join(home, file)}' "$@"\n`
    writeFileSync(join(folder, 'node_modules/.bin', command), line, { mode: 0o755 })
  }
}
