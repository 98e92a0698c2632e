// Here the packages are sources; users have JavaScript, and need no transform for it.
import { stripTypeScriptTypes } from 'node:module'

export default { process: (source) => ({ code: stripTypeScriptTypes(source) }) }
