// The functions that packages export, by entry: for tests that try each of them.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

type AnyFunction = (...given: readonly unknown[]) => unknown

const root = join(import.meta.dirname, '../..')

/** The functions of every entry of some packages, by the name that a user imports the entry by. Classes are left out. */
export async function functionsOf(
  packages: readonly string[],
): Promise<Readonly<Record<string, Readonly<Record<string, AnyFunction>>>>> {
  const found: Record<string, Record<string, AnyFunction>> = {}
  for (const name of packages) {
    const folder = join(root, 'packages', name)
    const { exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
      readonly exports: Readonly<Record<string, string>>
    }
    for (const [entry, file] of Object.entries(exports)) {
      // Jest alone has what this entry extends, and it exports nothing.
      if (!file.endsWith('.ts') || entry === './jest') continue
      const module = (await import(pathToFileURL(join(folder, file)).href)) as Readonly<
        Record<string, unknown>
      >
      const functions = Object.entries(module).filter(([, value]) => isPlainFunction(value))
      found[`@tallystick/${name}${entry.slice(1)}`] = Object.fromEntries(functions) as Record<
        string,
        AnyFunction
      >
    }
  }
  return found
}

function isPlainFunction(value: unknown): boolean {
  return typeof value === 'function' && !Function.prototype.toString.call(value).startsWith('class')
}
