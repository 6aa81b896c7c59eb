package resp

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
)

// User is who may speak to the server. All keys of CL.THROTTLE and DEL are put behind its
// prefix; the rules that the TG commands ask are the same for all.
type User struct {
	Name, Password, Prefix string
}

// DefaultUser is the name that AUTH without a name means.
const DefaultUser = "default"

// accounts are the users of a server. They are replaced as a whole.
type accounts struct {
	salt [16]byte
	all  map[string]*account
}

type account struct {
	User
	hash [sha256.Size]byte
}

func newAccounts(users []User) *accounts {
	a := &accounts{all: make(map[string]*account, len(users))}
	_, _ = rand.Read(a.salt[:])
	for _, u := range users {
		a.all[u.Name] = &account{User: u, hash: a.sum(u.Password)}
	}
	return a
}

func (a *accounts) sum(password string) [sha256.Size]byte {
	h := sha256.New()
	h.Write(a.salt[:])
	h.Write([]byte(password))
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	return sum
}

// open reports whether nobody has to authenticate.
func (a *accounts) open() bool { return len(a.all) == 0 }

// login returns the account of a name if the password is right, otherwise nil. How long it takes
// tells neither whether there is such a user nor how much of the password is right.
func (a *accounts) login(name, password string) *account {
	sum := a.sum(password)
	found := a.all[name]
	hash := &[sha256.Size]byte{}
	if found != nil {
		hash = &found.hash
	}
	if subtle.ConstantTimeCompare(sum[:], hash[:]) == 1 && found != nil {
		return found
	}
	return nil
}

// still returns the present account of a user who has logged in as was; nil if there is none with
// the same password.
func (a *accounts) still(was *account) *account {
	if was == nil {
		return nil
	}
	now := a.all[was.Name]
	if now == nil || subtle.ConstantTimeCompare([]byte(now.Password), []byte(was.Password)) == 0 {
		return nil
	}
	return now
}
