package portal

// rights gives a member of a Workspace sudo and a role that does not exist, and takes both with
// the role of an admin.
func rights(alice *person) {
	alice.pressIn("bob", "Rights")
	alice.Click(alice.t, "dialog input[type=checkbox]")
	role := hostile + "\u202e"
	alice.fillsBy("Name of the role", role)
	alice.fillsBy("Namespace, if it is for one only", "default")
	alice.press("Add")
	alice.sees(role + " in default")
	alice.fillsBy("Name of the role", "typed")
	alice.looks("member-rights")
	alice.press("Save")
	alice.closed()
	alice.sees("sudo")
	alice.sees("Not all are given")
	alice.looks("members-of-workspace")
	alice.role("bob", "admin")
	alice.Until(alice.t, "document.querySelector('[aria-label=\"Role of bob\"]:not(:disabled)')?.value === 'admin'")
	alice.sees("sudo")
	alice.role("bob", "member")
	alice.sees("bob loses these rights together with the present role: sudo, " + role + " in default, typed.")
	alice.press("Cancel")
	alice.Until(alice.t, "document.querySelector('[aria-label=\"Role of bob\"]').value === 'admin'")
	alice.role("bob", "member")
	alice.press("Make a member")
	alice.closed()
	alice.misses("Not all are given")
}
