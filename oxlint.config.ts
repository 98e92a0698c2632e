import { defineConfig, type DummyRuleMap } from 'oxlint'

/** An import that a file may not have. */
interface Banned {
  readonly regex: string
  readonly message: string
  readonly allowTypeImports?: true
}

const patterns = (...banned: readonly Banned[]): DummyRuleMap => ({
  'typescript/no-restricted-imports': ['error', { patterns: banned }],
})

const packages = 'core|testkit|providers|ledger|replay|tools|inspector|server|otel|engines|evals|cli'
const otherPackage: Banned = {
  regex: `^(\\.\\./)+(packages/)?(${packages})/(src|test|dist|lib)/`,
  message: 'Reaches into another package. Import what it exports.',
}
const outsideOfSources: Banned = {
  regex: '^(\\.\\./)+(test|bench|examples|scripts)/',
  message: 'Users do not get this file.',
}
const sleep = 'Tests do not sleep. Use a manual clock, or wait for the event.'
const timers: Banned = { regex: '^(node:)?timers', message: sleep }

/** The sources of these packages import none of the others, and no entry that is for tests. */
const mayNotImport = (files: string | string[], others: string, message: string) => ({
  files: [files].flat(),
  rules: patterns({ regex: `^@tallystick/(${others})(/|$)`, message }, otherPackage, outsideOfSources),
})

/** The folders of core, from the ground up: a folder imports itself and those before it. */
const folders = ['values', 'events', 'machine', 'ledger', 'models', 'tools', 'agent', 'runtime']
const noHost: readonly Banned[] = [
  { regex: '^node:', message: 'Core runs everywhere: no Node modules in it.' },
  { regex: '^@tallystick/', message: 'Core stands on no other package, and imports itself by path.' },
  outsideOfSources,
]
const rxjsClock = [
  ...['ajax', 'animationFrameScheduler', 'animationFrames', 'asapScheduler', 'asyncScheduler', 'auditTime'],
  ...[
    'bufferTime',
    'debounceTime',
    'delay',
    'interval',
    'sampleTime',
    'throttleTime',
    'timeInterval',
    'timeout',
  ],
  ...['timeoutWith', 'timer', 'timestamp', 'windowTime'],
]
const clockMessage = "Uses the host's clock. Schedule through the Clock port."
const pure: Readonly<Record<string, Banned>> = {
  values: { regex: '^rxjs(/|$)', message: 'Values are plain data.' },
  events: { regex: '^rxjs(/|$)', message: 'Events are plain data.' },
  machine: { regex: '^rxjs(/|$)', message: 'The machine is plain functions over plain data.' },
}

const arrowsOfCore = folders.map((folder, index) => {
  const above = folders.slice(index + 1)
  const own = pure[folder]
  const banned = [
    ...noHost,
    ...(own ? [own] : []),
    ...(above.length > 0
      ? [{ regex: `^(\\.\\./)+(${above.join('|')})/`, message: `${folder} may not import this folder.` }]
      : []),
  ]
  return {
    files: [`packages/core/src/${folder}/**`],
    excludeFiles: ['packages/core/src/values/observables.ts'],
    rules: {
      'typescript/no-restricted-imports': [
        'error',
        { paths: [{ name: 'rxjs', importNames: rxjsClock, message: clockMessage }], patterns: banned },
      ],
    } satisfies DummyRuleMap,
  }
})

const hostGlobals = {
  globalThis: 'Only values/host.ts knows the host.',
  process: 'Only values/host.ts knows the host.',
  performance: 'Take the time from the Clock port.',
  crypto: 'Take randomness from the Host port.',
  fetch: 'Core does no input or output: use a port.',
  queueMicrotask: 'Schedule through the Clock port.',
  setTimeout: 'Schedule through the Clock port.',
  setInterval: 'Schedule through the Clock port.',
  setImmediate: 'Schedule through the Clock port.',
  clearTimeout: 'Schedule through the Clock port.',
  clearInterval: 'Schedule through the Clock port.',
}
const ofLocale = ['localeCompare', 'toLocaleString', 'toLocaleLowerCase', 'toLocaleUpperCase']

export default defineConfig({
  plugins: ['typescript', 'import', 'unicorn', 'oxc', 'promise', 'vitest'],
  jsPlugins: ['./scripts/lint/no-ambient-date.ts', 'eslint-plugin-regexp'],
  categories: { correctness: 'error', suspicious: 'error' },
  options: { typeAware: true, denyWarnings: true, reportUnusedDisableDirectives: 'error' },
  ignorePatterns: ['**/node_modules/**', '**/dist/**', '**/lib/**', '**/fixtures/**', '**/golden/**'],
  rules: {
    eqeqeq: ['error', 'always', { null: 'ignore' }],
    'no-shadow': 'off',
    'no-warning-comments': ['error', { terms: ['todo', 'fixme', 'xxx'], location: 'anywhere' }],
    'unicorn/filename-case': ['error', { case: 'kebabCase', multipleFileExtensions: true }],
    'import/no-cycle': 'error',
    'import/no-default-export': 'error',
    'import/no-unassigned-import': 'off',
    'promise/always-return': 'off',
    'promise/no-callback-in-promise': 'off',
    'unicorn/no-array-reverse': 'off',
    'unicorn/no-array-sort': 'off',
    // A copy before a loop that deletes is needed, and the rule cannot tell.
    'unicorn/no-useless-spread': 'off',
    'unicorn/consistent-function-scoping': 'off',
    'typescript/await-thenable': 'error',
    'typescript/consistent-type-imports': 'error',
    'typescript/no-explicit-any': 'error',
    'typescript/no-floating-promises': 'error',
    'typescript/no-misused-promises': 'error',
    'typescript/only-throw-error': 'error',
    'typescript/return-await': ['error', 'error-handling-correctness-only'],
    // `default` does not count: a new event type has to turn every switch over events red.
    'typescript/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: false }],
    // False alarm on exhaustive switches; tsc finds a function that ends without its return value.
    'typescript/consistent-return': 'off',
    // Brands, JSON and narrowed keys need assertions; what matters is that no `any` gets in.
    'typescript/no-unsafe-type-assertion': 'off',
  },
  // For each file the last override that names a rule wins whole.
  overrides: [
    {
      // Texts come from models, tools, files and people: a pattern that goes back over them stops the whole process.
      files: ['packages/*/src/**'],
      rules: {
        'regexp/no-super-linear-backtracking': ['error', { report: 'potential' }],
        'regexp/no-super-linear-move': ['error', { report: 'potential' }],
      },
    },
    {
      // What is printed may hold text from outside: one place writes, and makes visible what a terminal would obey.
      files: ['packages/*/src/**'],
      excludeFiles: ['packages/cli/src/terminal/output.ts', 'packages/cli/src/main.ts'],
      rules: {
        'no-console': 'error',
        'no-restricted-properties': [
          'error',
          ...['stdout', 'stderr', 'emitWarning'].map((property) => ({
            property,
            message: 'Only cli/src/terminal/output.ts writes to the streams of the process.',
          })),
        ],
      },
    },
    {
      files: ['packages/cli/src/**'],
      excludeFiles: ['packages/cli/src/terminal/output.ts'],
      rules: patterns(
        {
          regex: '^(node:)?(readline|tty|console|repl)(/|$)',
          message: 'Only terminal/output.ts writes to a terminal and asks there.',
        },
        otherPackage,
        outsideOfSources,
      ),
    },
    mayNotImport(
      'packages/{providers,ledger,tools,otel,engines}/src/**',
      'core/testing|testkit|providers|ledger|replay|tools|server|otel|engines|evals|cli',
      'It stands on core only, never on its test parts.',
    ),
    mayNotImport(
      'packages/replay/src/**',
      'core/testing|testkit|ledger/\\w+|providers|replay|tools|inspector|server|otel|engines|evals|cli',
      'It stands on core and on functions of ledger, and touches no store.',
    ),
    mayNotImport(
      'packages/evals/src/**',
      'core/testing|testkit|ledger/\\w+|providers|tools|inspector|server|otel|engines|evals|cli',
      'It stands on core and on functions of ledger and replay, and touches no store.',
    ),
    mayNotImport(
      'packages/server/src/**',
      'core/testing|testkit|ledger/\\w+|providers|tools|server|otel|engines|cli',
      'It stands on core, on functions of ledger, replay and evals, and on the page of inspector, and touches no store.',
    ),
    mayNotImport(
      'packages/testkit/src/**',
      'core/testing|testkit|providers|ledger|replay|tools|server|otel|engines|evals|cli',
      'It stands on core only.',
    ),
    // What a contract hands on is for those who test a ledger, or a model, of their own.
    mayNotImport(
      ['packages/*/src/contract/**', 'packages/*/src/contract.ts'],
      'providers|ledger|replay|tools|server|otel|engines|evals|cli',
      'A contract stands on core and its test parts only.',
    ),
    {
      // Core is pure, and so are the doubles of its tests: no host, no clock, no randomness but through the ports.
      files: ['packages/{core,testkit}/src/**'],
      // The contract of models plays their service, over HTTP.
      excludeFiles: ['packages/core/src/values/host.ts', 'packages/testkit/src/model-contract/**'],
      rules: {
        'tallystick/no-ambient-date': 'error',
        'no-restricted-globals': [
          'error',
          ...Object.entries(hostGlobals).map(([name, message]) => ({ name, message })),
        ],
        'no-restricted-properties': [
          'error',
          { object: 'Date', property: 'now', message: 'Take the time from the Clock port.' },
          { object: 'Math', property: 'random', message: 'Take randomness from the Host port.' },
          ...ofLocale.map((property) => ({
            property,
            message: "Depends on the host's locale, so a replay elsewhere differs.",
          })),
        ],
      },
    },
    { files: ['packages/core/src/**'], rules: patterns(...noHost) },
    {
      // A page in a browser checks and explains records with these.
      files: [
        'packages/{ledger/src/record,replay/src/{compare,diff,explain}}.ts',
        'packages/ledger/src/verify/{record-check,event-audit}.ts',
        'packages/ledger/src/format/{body,chain,event-row,history,sha256}.ts',
      ],
      rules: {
        'no-restricted-imports': [
          'error',
          { patterns: [{ regex: '^node:', message: 'Browsers have none.' }] },
        ],
      },
    },
    ...arrowsOfCore,
    {
      files: ['packages/*/test/**', 'examples/*/test/**', 'clients/*/test/**', 'scripts/test/**'],
      rules: {
        'no-useless-concat': 'off',
        'no-restricted-globals': [
          'error',
          { name: 'setTimeout', message: sleep },
          { name: 'setInterval', message: sleep },
        ],
        'no-restricted-properties': [
          'error',
          { object: 'Date', property: 'now', message: 'Tests do not depend on wall time.' },
        ],
        ...patterns(timers),
        'vitest/no-focused-tests': 'error',
        'vitest/no-identical-title': 'error',
        'vitest/expect-expect': [
          'error',
          { assertFunctionNames: ['expect', 'expectMessage', 'given.**.then*'] },
        ],
        'vitest/no-standalone-expect': 'error',
        'vitest/valid-title': 'error',
      },
    },
    { files: ['packages/*/test/**'], rules: patterns(timers, otherPackage) },
    {
      // As users write tests in other runners, whose titles and assertions the linter does not know.
      files: ['packages/testkit/test/runners/**'],
      rules: {
        'import/no-default-export': 'off',
        'typescript/no-floating-promises': 'off',
        'vitest/expect-expect': 'off',
        'vitest/valid-title': 'off',
      },
    },
    {
      // Their packages are installed by `pnpm bench` only: their types are unknown to the linter.
      files: ['bench/subjects/peers/**'],
      rules: { 'typescript/no-redundant-type-constituents': 'off' },
    },
    {
      files: [
        '**/*.config.ts',
        'scripts/lint/**',
        'packages/cli/test/kit/stores/**',
        'packages/server/test/kit/runtimes/**',
      ],
      rules: { 'import/no-default-export': 'off' },
    },
  ],
})
