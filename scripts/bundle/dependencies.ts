// What becomes of the dependencies of a package when its modules are laid together.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import type { Plugin } from 'rolldown'
import { entriesOfCore } from './entries-of-core.ts'

/**
 * Dependencies that are laid into the files of the package, as far as it uses them: no value of theirs reaches a user or comes
 * from one, so a second copy does no harm, and one file loads faster than the hundreds that they come in.
 */
const laidIn: ReadonlySet<string> = new Set(['@noble/hashes', 'commander', 'kysely', 'zod'])

/**
 * The parts of RxJS that are laid in: functions that make and change streams. Its classes, its errors, and what they share
 * stay outside, so that each is the one that users import: `timeout` declares an error, too.
 */
const laidInOfRxjs =
  /^(?:firstValueFrom|lastValueFrom|(?:observable|operators|scheduled|symbol)\/(?!timeout$)\w+|util\/(?![A-Z]\w*Error$|errorContext$|reportUnhandledError$)\w+)$/

/** The name of the package that an import names. */
function packageNamed(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}

/** Whether a module is laid in from a dependency. */
export function isLaidIn(path: string): boolean {
  return path.includes('/node_modules/')
}

/** An import of names, in the form in which all sources of this repository are. */
const importOfNames = /^import \{([^}]*)\} from '([^']+)'$/gm

/**
 * Decides about the dependencies of a package. What is not laid in stays outside.
 *
 * The classes of RxJS stay outside: a user's `Observable` has to be the class that ours are of. But an import of `rxjs` loads 220
 * files. So each name is imported from the file that declares it, which RxJS 7 exports as `rxjs/internal/…`: the same classes,
 * from as few files as they need, while operators are laid in. In the same way, what a package takes of core comes from the
 * entry that loads least: a list of runs needs no runtime.
 */
export async function dependencies(home: string): Promise<Plugin> {
  const sources = join(home, 'src')
  const rxjs = rxjsOf(home)
  const placesOf: Readonly<Record<string, ReadonlyMap<string, string>>> = {
    ...(await entriesOfCore()),
    ...(rxjs && { rxjs: rxjs.places }),
  }
  return {
    name: 'dependencies',
    resolveId(specifier, importer) {
      const part = rxjs?.partOf(specifier, importer)
      if (rxjs !== undefined && part !== undefined) {
        return laidInOfRxjs.test(part)
          ? join(rxjs.folder, `${part}.js`)
          : { id: `rxjs/internal/${part}`, external: true }
      }
      if (importer === undefined || /^[./]/.test(specifier)) return null
      const isWithin = laidIn.has(packageNamed(specifier)) || isLaidIn(importer)
      return isWithin && !specifier.startsWith('node:') ? null : { id: specifier, external: true }
    },
    transform: {
      order: 'pre',
      handler(code, id) {
        if (!id.startsWith(sources)) return null
        const lighter = code.replace(importOfNames, (statement, names: string, specifier: string) =>
          lighterImports(statement, names.split(','), placesOf[specifier]),
        )
        // Lines stay where they are, and so does what the source map says.
        return lighter === code ? null : { code: lighter, map: null }
      },
    },
  }
}

/** The statements that import these names each from its place, on as many lines as the statement had. */
function lighterImports(
  statement: string,
  names: readonly string[],
  places: ReadonlyMap<string, string> | undefined,
): string {
  if (places === undefined) return statement
  const values = names.map((name) => name.trim()).filter((name) => name !== '' && !name.startsWith('type '))
  const imports = values.map((name) => {
    const place = places.get(name.replace(/ as .*/, ''))
    if (place === undefined) throw new Error(`Nothing exports ${name}, which is imported by: ${statement}`)
    return `import { ${name} } from '${place}';`
  })
  return imports.join(' ') + '\n'.repeat(statement.split('\n').length - 1)
}

interface Rxjs {
  /** Where its files are. */
  readonly folder: string
  /** The file that declares each name. */
  readonly places: ReadonlyMap<string, string>
  /** The file of RxJS that an import names, below the folder; `undefined` where the import names another one. */
  partOf(specifier: string, importer: string | undefined): string | undefined
}

/** RxJS as modules, where the package depends on it. */
function rxjsOf(home: string): Rxjs | undefined {
  if (!existsSync(join(home, 'node_modules/rxjs'))) return undefined
  const entry = createRequire(join(home, 'package.json')).resolve('rxjs').replace('/cjs/', '/esm/')
  const folder = join(dirname(entry), 'internal')
  const exports = readFileSync(entry, 'utf8').matchAll(/^export \{ (.*) \} from '\.\/(internal\/.*)';$/gm)
  return {
    folder,
    places: new Map(
      [...exports].flatMap(([, names = '', file = '']) =>
        names.split(', ').map((name) => [name.replace(/.* as /, ''), `rxjs/${file}`] as const),
      ),
    ),
    partOf(specifier, importer) {
      if (specifier.startsWith('rxjs/internal/')) return specifier.slice('rxjs/internal/'.length)
      if (!specifier.startsWith('.') || !importer?.startsWith(folder)) return undefined
      return relative(folder, join(dirname(importer), specifier))
    },
  }
}

/** The licences of the packages that these modules are of, which each copy has to hold. */
export function licencesOf(modules: readonly string[]): string {
  const homes = [...new Set(modules.filter(isLaidIn).map(packageHome))].toSorted()
  return homes.map((home) => `${nameOf(home)}\n\n${licenceIn(home)}\n`).join('\n')
}

function packageHome(path: string): string {
  let home = dirname(path)
  while (!isPackage(home)) home = dirname(home)
  return home
}

/** A folder of modules may have a package.json that only says which modules they are. */
function isPackage(folder: string): boolean {
  const path = join(folder, 'package.json')
  return existsSync(path) && 'version' in (JSON.parse(readFileSync(path, 'utf8')) as object)
}

function nameOf(home: string): string {
  const { name, version } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8')) as Manifest
  return `${name} ${version}`
}

interface Manifest {
  readonly name: string
  readonly version: string
}

function licenceIn(home: string): string {
  const file = readdirSync(home).find((name) => /^licen[cs]e/i.test(name))
  if (file === undefined) throw new Error(`${home} has no licence, so it cannot be laid in.`)
  return readFileSync(join(home, file), 'utf8').trim()
}
