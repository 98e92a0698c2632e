import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'

const repository = join(import.meta.dirname, '../..')

/** What decides how the tools behave. Sources are left behind: their own faults must not hide or feign a lock. */
const settings = [
  '.gitignore',
  '.oxlintrc.json',
  'package.json',
  'pnpm-workspace.yaml',
  'scripts/lint',
  'tsconfig.base.json',
  'tsconfig.json',
  'tsconfig.test.json',
]

/** What the plants import. */
const anchors: Readonly<Record<string, string>> = {
  'packages/core/src/index.ts': "export { x } from './vocabulary/errors.ts'\n",
  'packages/core/src/vocabulary/errors.ts': 'export const x: number = 1\n',
  'packages/core/src/testing/index.ts': "export { x } from '../vocabulary/errors.ts'\n",
  'packages/core/src/vocabulary/values/ids.ts': 'export const x: number = 1\n',
  'packages/core/src/machine/state/state.ts': 'export const x: number = 1\n',
  'packages/core/src/ports/clock.ts': 'export const x: number = 1\n',
  'packages/core/src/runtime/run/run.ts': 'export const x: number = 1\n',
  'packages/cli/src/index.ts': 'export const x: number = 1\n',
  'packages/ledger/src/index.ts': 'export const x: number = 1\n',
  'packages/providers/src/index.ts': 'export const x: number = 1\n',
  'packages/tools/src/index.ts': 'export const x: number = 1\n',
}

/** A copy of the repository with its real settings and installed packages, and with almost no sources. */
export function buildSkeleton(): string {
  const root = mkdtempSync(join(realpathSync(tmpdir()), 'tallystick-locks-'))
  for (const path of settings) cpSync(join(repository, path), join(root, path), { recursive: true })
  linkModules(root, 'node_modules')
  for (const name of globSync('{packages,examples}/*', { cwd: repository })) {
    const [from, to] = [join(repository, name), join(root, name)]
    mkdirSync(to, { recursive: true })
    for (const file of ['package.json', 'tsconfig.json']) {
      if (existsSync(join(from, file))) cpSync(join(from, file), join(to, file))
    }
    linkModules(root, join(name, 'node_modules'))
  }
  plantFiles(root, anchors)
  return root
}

/** Writes files below a root. */
export function plantFiles(root: string, texts: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(texts)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
}

/** Links what is installed in a folder of the repository: packages of others to themselves, ours to the skeleton's. */
function linkModules(root: string, folder: string): void {
  mkdirSync(join(root, folder), { recursive: true })
  for (const name of existsSync(join(repository, folder)) ? readdirSync(join(repository, folder)) : []) {
    if (name.startsWith('.')) continue
    if (name.startsWith('@')) {
      linkModules(root, join(folder, name))
      continue
    }
    const target = realpathSync(join(repository, folder, name))
    const home = relative(repository, target)
    symlinkSync(home.includes('node_modules') ? target : join(root, home), join(root, folder, name))
  }
}

/** A file with all that core imports from outside: a library whose types bring a host's in is seen only when imported. */
export function importsOfCore(): string {
  const specifiers = new Set<string>()
  for (const path of globSync('packages/core/src/**/*.ts', { cwd: repository })) {
    const text = readFileSync(join(repository, path), 'utf8')
    for (const match of text.matchAll(/^(?:import|export|\}).* from '([^.'][^']*)'/gm))
      specifiers.add(match[1] ?? '')
  }
  const foreign = [...specifiers].filter((specifier) => !specifier.startsWith('@tallystick/')).sort()
  return foreign.map((name, index) => `export type * as m${index} from '${name}'\n`).join('')
}
