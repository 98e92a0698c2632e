import { spawnSync } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Tells which mutants the compiler refuses, in copies of the sources of packages. */
export class Compiler {
  readonly #root: string
  readonly #copies = new Map<string, string>()

  constructor(root: string) {
    this.#root = root
  }

  /** Whether a package still compiles with this text in the place of one of its files. Names that are unused do not count. */
  accepts(path: string, text: string): boolean {
    const [, name = ''] = path.split('/')
    const copy = this.#copies.get(name) ?? this.#copyOf(name)
    this.#copies.set(name, copy)
    const file = join(copy, path)
    const sound = readFileSync(file, 'utf8')
    try {
      writeFileSync(file, text)
      const tsc = join(this.#root, 'node_modules/.bin/tsc')
      return spawnSync(tsc, ['-p', join(copy, 'packages', name)]).status === 0
    } finally {
      writeFileSync(file, sound)
    }
  }

  close(): void {
    for (const copy of this.#copies.values()) rmSync(copy, { recursive: true, force: true })
    this.#copies.clear()
  }

  #copyOf(name: string): string {
    const copy = mkdtempSync(join(realpathSync(tmpdir()), 'tallystick-compile-'))
    const place = join('packages', name)
    mkdirSync(join(copy, place), { recursive: true })
    cpSync(join(this.#root, place, 'src'), join(copy, place, 'src'), { recursive: true })
    cpSync(join(this.#root, 'tsconfig.base.json'), join(copy, 'tsconfig.base.json'))
    for (const modules of ['node_modules', join(place, 'node_modules')]) {
      symlinkSync(join(this.#root, modules), join(copy, modules))
    }
    cpSync(join(this.#root, place, 'package.json'), join(copy, place, 'package.json'))
    const settings = JSON.parse(readFileSync(join(this.#root, place, 'tsconfig.json'), 'utf8')) as {
      readonly compilerOptions: Readonly<Record<string, unknown>>
    }
    const { rootDir: _, outDir: __, ...options } = settings.compilerOptions
    const checkOnly = { noEmit: true, composite: false, noUnusedLocals: false, noUnusedParameters: false }
    writeFileSync(
      join(copy, place, 'tsconfig.json'),
      JSON.stringify({
        ...{ extends: '../../tsconfig.base.json', include: ['src'] },
        compilerOptions: {
          ...options,
          ...checkOnly,
          isolatedDeclarations: false,
          declaration: false,
          declarationMap: false,
        },
      }),
    )
    return copy
  }
}
