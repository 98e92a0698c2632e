// Loaded before the command: from here on the package that the address names cannot be found, as if it were not installed.
import { registerHooks } from 'node:module'

const missing = new URL(import.meta.url).search.slice(1)

registerHooks({
  resolve(specifier, context, next) {
    if (specifier !== missing) return next(specifier, context)
    throw Object.assign(new Error(`Cannot find package '${missing}' imported from ${context.parentURL}`), {
      code: 'ERR_MODULE_NOT_FOUND',
    })
  },
})
