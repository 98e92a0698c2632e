// Builds a package into `lib` before it is packed: `prepack` runs it in the package's folder.
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import { defineConfig } from 'tsdown'
import { readyPage } from './scripts/ready-page.ts'

type Targets = Readonly<Record<string, string>>

interface Manifest {
  readonly bin?: Targets
  readonly exports: Targets
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>
  readonly publishConfig: { readonly bin?: Targets; readonly exports: Targets }
}

/** A module that is started as a process, from a file beside it. */
const processes = {
  'built-in/sql-query/statement-process': 'src/built-in/sql-query/statement-process.ts',
}

const {
  bin = {},
  exports,
  peerDependenciesMeta = {},
  publishConfig,
} = JSON.parse(readFileSync('package.json', 'utf8')) as Manifest

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
  plugins: [readyPage],
  onSuccess: ignoreMissingTypes,
  failOnWarn: true,
  logLevel: 'warn',
  outputOptions: {
    // Their sources are in the package.
    sourcemapExcludeSources: true,
    // Editors read comments in the declarations, and bundlers the annotations here.
    comments: { legal: true, annotation: true, jsdoc: false },
  },
})

/**
 * Where an optional package is not installed, its types are `any`: declarations import it under a `@ts-ignore`. An import of
 * nothing, as the bundler leaves it, goes. No line moves where its place is enough, so that the source maps stay right.
 */
function ignoreMissingTypes(): void {
  const isOptional = (line: string): boolean =>
    Object.keys(peerDependenciesMeta).some(
      (name) => line.includes(`from "${name}"`) || line.includes(`from "${name}/`),
    )
  for (const file of globSync('lib/**/*.d.ts')) {
    const lines = readFileSync(file, 'utf8').split('\n')
    const end = lines.findIndex((line) => !line.startsWith('import '))
    const imports = lines.slice(0, end).filter((line) => !line.startsWith('import "'))
    const kept = imports.flatMap((line) => (isOptional(line) ? ['// @ts-ignore', line] : [line]))
    const padding = Array.from({ length: Math.max(0, end - kept.length) }, () => '')
    writeFileSync(file, [...kept, ...padding, ...lines.slice(end)].join('\n'))
  }
}
