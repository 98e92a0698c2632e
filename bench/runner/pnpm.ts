const running = process.env['npm_execpath']

/**
 * How to call the pnpm that runs this script; started without pnpm, the one that the README names.
 * Which of the two it is makes no difference to what the call does.
 */
export const pnpm: readonly [string, ...string[]] =
  running !== undefined && /pnpm(\.exe)?$/.test(running) ? [running] : ['npx', '-y', 'pnpm@12']
