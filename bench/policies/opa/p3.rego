# `opa build --target wasm --entrypoint documents/allow --optimize 1 p3.rego` makes p3.wasm of it, inside of bundle.tar.gz.
package documents

default allow := false

allow if "admin" in input.auth.roles

allow if {
	input.record.status in {"published", "review"}
	input.record.due_at != null
	input.record.due_at < input.now
	input.record.owner != null
	input.record.owner == input.auth.id
}
