import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'

/** Imports the entry where the host does not find fast-check, and prints how that ends. */
const program = `
  import { registerHooks } from 'node:module'
  registerHooks({
    resolve(name, context, next) {
      if (name !== 'fast-check') return next(name, context)
      throw Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' })
    },
  })
  const { ConfigurationError } = await import('@tallystick/core')
  const { error } = await import('@tallystick/testkit/random').catch((error) => ({ error }))
  console.log(JSON.stringify({ known: error instanceof ConfigurationError, message: error.message, cause: error.cause?.code }))`

it('says what to install where fast-check is missing', () => {
  const parameters = ['--no-warnings', '--input-type=module', '-e', program]
  const printed = execFileSync(process.execPath, parameters, {
    cwd: import.meta.dirname,

    encoding: 'utf8',
  })
  expect(JSON.parse(printed)).toEqual({
    known: true,
    message:
      '@tallystick/testkit/random needs the package fast-check, which is not installed or could not be loaded. Add it: npm install --save-dev fast-check.',
    cause: 'ERR_MODULE_NOT_FOUND',
  })
})
