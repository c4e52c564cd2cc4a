// JSON schemas as readable types, and an example of each.

/** Resolve a reference to its schema. */
function resolve(schema, document_) {
  if (!schema.$ref) return schema;
  return schema.$ref
    .replace(/^#\//, '')
    .split('/')
    .reduce((part, name) => part[name], document_);
}

/** Write a schema as text: {"items": [text | whole number], "time"?: whole number}. */
export function schemaText(schema, document_, indent = '', seen = []) {
  const name = schema.$ref;
  if (name && seen.includes(name)) return name.split('/').at(-1);
  const found = resolve(schema, document_);
  const deeper = name ? [...seen, name] : seen;
  const inner = (part, space = indent) => schemaText(part, document_, space, deeper);
  const options = found.anyOf ?? found.oneOf;
  if (options) return [...new Set(options.map((option) => inner(option)))].join(' | ');
  if (found.enum) return found.enum.map((value) => JSON.stringify(value)).join(' | ');
  if ('const' in found) return JSON.stringify(found.const);
  if (found.type === 'array' && found.prefixItems)
    return `[${found.prefixItems.map((part) => inner(part)).join(', ')}]`;
  if (found.type === 'array') return `[${inner(found.items ?? {})}, …]`;
  if (found.properties) return record(found, indent, inner);
  if (found.type === 'object')
    return found.additionalProperties ? `{name: ${inner(found.additionalProperties)}, …}` : '{}';
  return limits(found);
}

function record(found, indent, inner) {
  const space = `${indent}  `;
  const lines = Object.entries(found.properties).map(
    ([name, part]) => `${space}"${name}"${(found.required ?? []).includes(name) ? '' : '?'}: ${inner(part, space)}`,
  );
  return lines.length ? `{\n${lines.join(',\n')}\n${indent}}` : '{}';
}

function limits(found) {
  const names = {string: 'text', integer: 'whole number', number: 'number', boolean: 'true | false', null: 'null'};
  const text = [found.type ?? 'anything']
    .flat()
    .map((type) => names[type] ?? type)
    .join(' | ');
  const {minimum: low, maximum: high} = found;
  const small = (value) => value !== undefined && Math.abs(value) < 1e9;
  if (small(low) && small(high)) return `${text} from ${low} to ${high}`;
  return small(low) ? `${text} from ${low}` : text;
}

/** Return an example of a schema, without its optional fields. */
export function example(schema, document_) {
  const found = resolve(schema, document_);
  if (found.examples) return found.examples[0];
  if ('default' in found) return found.default;
  if (found.enum) return found.enum[0];
  if ('const' in found) return found.const;
  const options = found.anyOf ?? found.oneOf;
  if (options) return example(options[0], document_);
  if (found.properties) return instance(found, document_);
  if (found.type === 'array') return [example(found.items ?? {}, document_)];
  return (
    {string: 'text', integer: found.minimum > 0 ? found.minimum : 0, number: 0, boolean: false, object: {}}[
      [found.type].flat()[0]
    ] ?? null
  );
}

function instance(found, document_) {
  const names = Object.keys(found.properties);
  const required = names.filter((name) => (found.required ?? []).includes(name));
  const least = found.minProperties && !required.length ? names.slice(0, found.minProperties) : required;
  return Object.fromEntries(least.map((name) => [name, example(found.properties[name], document_)]));
}
