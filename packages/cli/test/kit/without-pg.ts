// Loaded before the command: from here on the package pg cannot be found, as if it were not installed.
import { registerHooks } from 'node:module'

registerHooks({
  resolve(specifier, context, next) {
    if (specifier !== 'pg') return next(specifier, context)
    throw Object.assign(new Error(`Cannot find package 'pg' imported from ${context.parentURL}`), {
      code: 'ERR_MODULE_NOT_FOUND',
    })
  },
})
