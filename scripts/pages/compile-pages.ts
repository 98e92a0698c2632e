// Compiles the programs of pages as their readers would, each page in a folder of its own.
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { type Step, readSteps } from './page.ts'
import { install, makeFolder } from './reader-folder.ts'

const repository = join(import.meta.dirname, '../..')

/** A page, by its path. */
export interface Page {
  readonly path: string
  readonly text: string
}

const compilerOptions = {
  target: 'es2024',
  lib: ['esnext'],
  types: ['node'],
  module: 'nodenext',
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  allowImportingTsExtensions: true,
  moduleDetection: 'force',
}

/**
 * Returns the errors of the compiler in the programs of each page, by its path. One run of the compiler sees all of them,
 * so that it reads the packages, which they share, once.
 */
export async function compilePages(pages: readonly Page[]): Promise<ReadonlyMap<string, readonly string[]>> {
  const folder = makeFolder()
  try {
    install(folder, ['@types/node'])
    for (const { path, text } of pages) savePrograms(join(folder, toPageName(path)), readSteps(text))
    writeFileSync(
      join(folder, 'tsconfig.json'),
      JSON.stringify({ compilerOptions, include: ['*/*.ts', '*/*.cts'] }),
    )
    const tsc = join(repository, 'node_modules/.bin/tsc')
    const { stdout } = await promisify(execFile)(tsc, ['--pretty', 'false'], { cwd: folder }).catch(
      (error: { stdout: string }) => error,
    )
    // Here packages are sources, which keep to stricter settings than a reader's; a reader has their declarations.
    const lines = stdout.split('\n')
    const [broken] = lines.filter((line) => line.startsWith('error TS'))
    if (broken !== undefined) throw new Error(`The compiler did not get as far as the pages: ${broken}`)
    const errors = lines.filter((line) => /^[\w-]+\/[\w-]+\.c?ts\(/.test(line))
    return new Map(
      pages.map(({ path }) => [path, errors.filter((line) => line.startsWith(`${toPageName(path)}/`))]),
    )
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const toPageName = (path: string): string => basename(path, '.md')

function savePrograms(folder: string, steps: readonly Step[]): void {
  mkdirSync(folder)
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  for (const [index, step] of steps.entries()) {
    if (step.kind === 'install') install(folder, step.packages)
    // A page may exchange a file: each of its versions is checked.
    if (step.kind === 'save') save(unused(folder, step.file), step.text)
    if (step.kind === 'program') save(join(folder, `program-${index + 1}.ts`), step.text)
  }
}

function save(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

/** Returns the path of a file in a folder, or another path beside it where that file exists. */
function unused(folder: string, file: string): string {
  const path = join(folder, file)
  return existsSync(path) ? unused(folder, `other-${file}`) : path
}
