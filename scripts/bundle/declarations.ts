import { spawnSync } from 'node:child_process'
import { existsSync, globSync, rmSync } from 'node:fs'
import { join } from 'node:path'

const repository = join(import.meta.dirname, '../..')

/**
 * Has the compiler write the declarations of a package, of its sources as they are now. Throws where one of them is
 * missing: without it the package would have no types.
 */
export function writeDeclarations(home: string): void {
  // The compiler remembers what it has written, and does not look whether it is still there.
  const isWritten = build(home) && missingIn(home).length === 0
  if (!isWritten && !build(home, '--force')) {
    throw new Error('The package cannot be packed: tsc -b, which writes its declarations, failed.')
  }
  const [missing] = missingIn(home)
  if (missing !== undefined) {
    throw new Error(
      `${missing} was not written, so the package would be without types. Look at its tsconfig.json.`,
    )
  }
  removeStale(home)
}

function build(home: string, ...options: readonly string[]): boolean {
  const compiler = join(repository, 'node_modules/.bin/tsc')
  return spawnSync(compiler, ['-b', ...options, home], { stdio: 'inherit' }).status === 0
}

function missingIn(home: string): readonly string[] {
  return globSync('src/**/*.ts', { cwd: home })
    .map((source) => source.replace(/^src/, 'dist').replace(/\.ts$/, '.d.ts'))
    .filter((file) => !existsSync(join(home, file)))
}

/** Removes declarations of sources that are no longer there. */
function removeStale(home: string): void {
  for (const file of globSync('dist/**/*.d.ts', { cwd: home })) {
    const source = file.replace(/^dist/, 'src').replace(/\.d\.ts$/, '.ts')
    if (!existsSync(join(home, source)))
      for (const end of ['', '.map']) rmSync(join(home, file + end), { force: true })
  }
}
