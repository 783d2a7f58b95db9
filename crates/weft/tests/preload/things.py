import os, subprocess, sys, shutil, mmap, fcntl, tempfile
b='/weft/py'
shutil.rmtree(b, ignore_errors=True)
os.makedirs(b+'/x/y')
with open(b+'/f','w') as f: f.write('hello\n'*1000)
assert open(b+'/f').read()=='hello\n'*1000
assert os.path.getsize(b+'/f')==6000
with open(b+'/out','w') as f: subprocess.run(['echo','sub'],stdout=f,check=True)
with open(b+'/out','a') as f: subprocess.run('echo two; ls -d /weft/py/x',shell=True,stdout=f,check=True)
assert open(b+'/out').read()=='sub\ntwo\n/weft/py/x\n'
with open(b+'/f','r+b') as f:
    f.seek(10); f.write(b'XYZ'); f.seek(0); assert f.read(13)[10:]==b'XYZ'
    m=mmap.mmap(f.fileno(),0,prot=mmap.PROT_READ,flags=mmap.MAP_PRIVATE); assert m[10:13]==b'XYZ'
    fcntl.flock(f,fcntl.LOCK_EX); fcntl.lockf(f,fcntl.LOCK_EX)
for i in range(50): open(b+'/x/y/%d'%i,'w').write(str(i))
assert sum(len(fs) for _,_,fs in os.walk(b))==52
os.rename(b+'/f',b+'/g'); assert not os.path.exists(b+'/f')
os.symlink('g',b+'/l'); assert open(b+'/l').read(5)=='hello'; os.link(b+'/g',b+'/h'); assert os.stat(b+'/h').st_nlink==2
os.chdir(b+'/x'); assert os.getcwd()=='/weft/py/x'; assert 'g' in os.listdir('..')
assert subprocess.check_output(['ls'],text=True)=='y\n'
assert subprocess.check_output('pwd;cat y/7',shell=True,text=True)=='/weft/py/x\n7'
os.chdir('/tmp')
with tempfile.TemporaryDirectory(dir=b) as d: open(d+'/t','w').write('t')
pid=os.fork()
f=open('/weft/py/fork','w') 
if pid==0:
    os._exit(0 if open(b+'/g').read(5)=='hello' else 1)
assert os.waitpid(pid,0)[1]==0
fd=os.open(b+'/shared',os.O_RDWR|os.O_CREAT)
os.write(fd,b'parent ')
pid=os.fork()
if pid==0:
    os.write(fd,b'child '); os._exit(0)
os.waitpid(pid,0); os.write(fd,b'parent2')
assert os.pread(fd,100,0)==b'parent child parent2', os.pread(fd,100,0)
import threading
def w(i):
    for k in range(40):
        p=b+'/t%d_%d'%(i,k); open(p,'w').write('x'*k)
        if os.stat(p).st_size!=k: wrong.append((p,k))
        os.unlink(p)
        if k%20==0:
            pid=os.fork()
            if pid==0:
                open(p,'w').write('child'); os._exit(0)
            if os.waitpid(pid,0)[1] or open(p).read()!='child': wrong.append(p)
wrong=[]
ts=[threading.Thread(target=w,args=(i,)) for i in range(6)]
[t.start() for t in ts];[t.join() for t in ts]
assert not wrong, wrong
shutil.copytree(b,b+'2',symlinks=True,dirs_exist_ok=True); shutil.rmtree(b+'2')
open(b+'/cut','w').write('hello'); os.truncate(b+'/cut',3); assert os.stat(b+'/cut').st_size==3
os.utime(b+'/g',(1,2)); assert os.stat(b+'/g').st_mtime==2
os.chmod(b+'/g',0o600); assert os.stat(b+'/g').st_mode&0o777==0o600
os.setxattr(b+'/g','user.a',b'1'); assert os.getxattr(b+'/g','user.a')==b'1'; assert os.listxattr(b+'/g')==['user.a']
assert os.statvfs(b).f_namemax==255 and os.path.realpath(b+'/l')==b+'/g'
