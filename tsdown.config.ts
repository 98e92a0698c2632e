// Builds a package into `lib` before it is packed: `prepack` runs it in the package's folder.
import { existsSync, readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { defineConfig } from 'tsdown'

type Targets = Readonly<Record<string, string>>

interface Manifest {
  readonly bin?: Targets
  readonly exports: Targets
  readonly publishConfig: { readonly bin?: Targets; readonly exports: Targets }
}

/** A module that is started as a process, from a file beside it. */
const processes = {
  'built-in/sql-query/statement-process': 'src/built-in/sql-query/statement-process.ts',
}

const { bin = {}, exports, publishConfig } = JSON.parse(readFileSync('package.json', 'utf8')) as Manifest

/** The source of each file that is published. */
const published = [
  ...Object.entries(publishConfig.exports).map(([entry, file]) => [file, exports[entry]] as const),
  ...Object.entries(publishConfig.bin ?? {}).map(([command, file]) => [file, bin[command]] as const),
].flatMap(([file, source]) =>
  source?.endsWith('.ts') ? [[relative('lib', file).replace(/\.js$/, ''), source] as const] : [],
)

export default defineConfig({
  cwd: process.cwd(),
  entry: Object.fromEntries([
    ...Object.entries(processes).filter(([, source]) => existsSync(source)),
    ...published,
  ]),
  outDir: 'lib',
  platform: 'neutral',
  // Dependencies and peers are imported, never copied.
  deps: { neverBundle: /^node:/, onlyBundle: [] },
  fixedExtension: false,
  sourcemap: true,
  dts: { generator: 'oxc' },
  // Imports come first, those of packages before those of files: where an optional package is not installed, its types are `any`.
  banner: { dts: '// @ts-ignore' },
  failOnWarn: true,
  logLevel: 'warn',
  outputOptions: {
    // Their sources are in the package.
    sourcemapExcludeSources: true,
    // Editors read comments in the declarations, and bundlers the annotations here.
    comments: { legal: true, annotation: true, jsdoc: false },
  },
})
