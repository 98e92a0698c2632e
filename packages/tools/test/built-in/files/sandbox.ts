import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { lstatSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { JsonObject } from '@tallystick/core/vocabulary'
import type { Tool } from '@tallystick/core'
import { type CalledTool, callTool } from '@tallystick/testkit'
import { filesTools, type FilesOptions } from '@tallystick/tools/files'
import { createNameRules } from '../../../src/built-in/files/names.ts'
import { createFilesTools } from '../../../src/built-in/files/tool-list.ts'
import { openRoot } from '../../../src/built-in/files/root.ts'
import type { FolderRules } from '../../../src/built-in/files/text.ts'

/** What every file outside of the root holds. */
export const secret = 'swordfish-outside'

/** A folder with `root`, and `outside` beside it, which holds secrets. */
export interface Sandbox {
  readonly folder: string
  readonly root: string
  readonly outside: string
  /** Writes files below the root, by their paths. */
  put(files: Readonly<Record<string, string | Uint8Array>>): void
  read(path: string): string
  remove(): void
}

export function sandbox(): Sandbox {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'tallystick-files-'))
  const [root, outside] = [join(folder, 'root'), join(folder, 'outside')]
  for (const each of [root, outside, join(outside, 'inner')]) mkdirSync(each)
  for (const name of ['secret.txt', 'a.txt', 'inner/secret.txt', 'inner/a.txt'])
    writeFileSync(join(outside, name), `${secret}\n`)
  return {
    ...{ folder, root, outside },
    put(files) {
      for (const [path, content] of Object.entries(files)) {
        mkdirSync(dirname(join(root, path)), { recursive: true })
        writeFileSync(join(root, path), content)
      }
    },
    read: (path) => readFileSync(join(root, path), 'utf8'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** Every path below a folder with what it is and holds, so that any change shows. */
export function pictureOf(folder: string): readonly string[] {
  const below = (path: string): readonly string[] =>
    readdirSync(join(folder, path))
      .sort()
      .flatMap((name) => {
        const inner = path === '' ? name : `${path}/${name}`
        const place = join(folder, inner)
        const stats = lstatSync(place)
        if (stats.isSymbolicLink()) return [`${inner} -> ${readlinkSync(place)}`]
        if (stats.isDirectory()) return [`${inner}/`, ...below(inner)]
        const content = stats.isFile() ? readFileSync(place, 'latin1') : ''
        return [`${inner} ${stats.mode.toString(8)} ${content}`]
      })
  return below('')
}

/** Calls tools by their names. */
export type Call = (name: string, input: JsonObject) => Promise<Pick<CalledTool, 'outcome' | 'text'>>

export function caller(tools: readonly Tool[]): Call {
  return async (name, input) => {
    const tool = tools.find((each) => each.name === name)
    if (!tool) throw new Error(`There is no tool ${name}.`)
    const { outcome, text } = await callTool(tool, input)
    return { outcome, text }
  }
}

/** The two ways to open files, where this system has both. */
export const ways =
  process.platform === 'linux' ? (['by handle', 'by name'] as const) : (['by name'] as const)

/** Tools that write too, over the root of a sandbox. */
export function toolsOver(
  { root }: Sandbox,
  way: (typeof ways)[number] = 'by handle',
  options: Omit<FilesOptions, 'root'> = {},
): readonly Tool[] {
  if (way === 'by handle') return filesTools({ root, write: true, ...options })
  const shown = createNameRules('filesTools', options.ignore ?? ['node_modules/'], options.hidden ?? false)
  const bounds = { maxBytes: 50_000, maxFileBytes: 10_000_000, maxEntries: 500, maxVisited: 100_000 }
  return createFilesTools({ root: openRoot('filesTools', root, shown, 'by name'), ...bounds }, true, options)
}

/** Tools over a root in which another process changes something at a moment of a call. */
export function disturbedTools(
  { root: folder }: Sandbox,
  {
    before = () => {},
    entered = () => {},
  }: {
    /** Called with the name of a folder or file that is about to be opened. */
    readonly before?: (name: string) => void
    /** Called with the name of a folder that was opened and is to be read. */
    readonly entered?: (name: string) => void
  },
  bounds: Partial<FolderRules> = {},
): readonly Tool[] {
  const root = openRoot('filesTools', folder, createNameRules('filesTools', [], false), 'by name')
  const disturbed = root.access().then((access) => ({
    ...access,
    enter: async (...[parent, name]: Parameters<typeof access.enter>) => {
      before(name)
      const inner = await access.enter(parent, name)
      entered(name)
      return inner
    },
    openFile: async (...[parent, name]: Parameters<typeof access.openFile>) => {
      before(name)
      return await access.openFile(parent, name)
    },
  }))
  const rules = { maxBytes: 50_000, maxFileBytes: 500, maxEntries: 500, maxVisited: 1_000, ...bounds }
  return createFilesTools({ ...rules, root: { ...root, access: () => disturbed } }, true, {})
}

/** How many files this process holds open, where the system tells. */
export function openFiles(): number {
  return process.platform === 'linux' ? readdirSync('/proc/self/fd').length : 0
}
