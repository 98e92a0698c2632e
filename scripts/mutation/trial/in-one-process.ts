/**
 * Packages that keep nothing in modules: when a module of theirs is replaced, their test files can still share a process.
 * `pnpm test`, which replaces no module, lets nearly all files share one.
 */
export const inOneProcess: readonly string[] = [
  'packages/{core,providers}/test/**/*.{spec,property,contract}.ts',
]
