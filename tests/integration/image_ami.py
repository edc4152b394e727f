"""A machine that looks like AWS's Deep Learning AMI, by hand after its release notes and public scripts.

Assumed of the image: driver 580.126.09 with its packages and Fabric Manager, NVLSM, CUDA with nvcc and NCCL below /usr/local/cuda-13.0, EFA 1.45.0,
Docker's containerd.io in place of the distribution's containerd, and dlami-nvme.service, which makes a volume group over the
instance-store disks and mounts it on /opt/dlami/nvme. The machines' kernel has no device mapper: the disk carries a real LVM
label, and a tmpfs stands for the volume.
"""

from . import shelf_gpu
from .mirror import Deb, Executable, Mirror, pack

DRIVER = "580.126.09"
NCCL = "2.28.9"
RECORD = "libfabric1-aws_2.3.1amzn2.0_amd64 libnccl-ofi_1.17.2-1_amd64 efa_2.17.3-1.amzn1_amd64"

LIKE_AN_AMI = """\
apt-get -qq update
apt-get -qq -y install lvm2 curl >/dev/null
pvcreate -q -ff -y /dev/nvme1n1
for name in nvidia-open libnvidia-compute-580 nvidia-persistenced nvidia-fabricmanager nvlsm containerd.io linux-image-cloud-amd64 ami-tree; do
    curl -sSf -o /root/$name.deb {url}/files/ami/$name.deb
done
dpkg -i /root/*.deb >/dev/null
systemctl daemon-reload
systemctl enable --now dlami-nvme.service containerd.service nvidia-persistenced.service
"""

STORE = """\
[Unit]
Description=Stand-in for the Deep Learning AMI's own instance store
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/mkdir -p /opt/dlami/nvme
ExecStart=/bin/mount -t tmpfs dlami-store /opt/dlami/nvme
[Install]
WantedBy=multi-user.target
"""


def debs() -> list[Deb]:
    """What the image has, as packages and one tree of files."""
    version = f"{DRIVER}-1"
    compiler = shelf_gpu.cuda_debs()[0].files["/usr/local/cuda/bin/nvcc"]
    engine = '#!/bin/sh\n[ "$1" != config ] || exec cat /etc/containerd/config.toml /etc/containerd/conf.d/*.toml\nexec sleep infinity\n'
    containerd = shelf_gpu.service("containerd", "containerd", "/usr/bin/containerd", Executable(engine))
    return [
        Deb("nvidia-open", version, files=shelf_gpu.smi()),
        Deb("libnvidia-compute-580", version, files=shelf_gpu.library(DRIVER)),
        Deb("nvidia-persistenced", version, files=shelf_gpu.PERSISTENCED),
        Deb("nvidia-fabricmanager", version, files=shelf_gpu.fabric_manager(DRIVER)),
        Deb("nvlsm", "2025.06.5-1"),
        Deb("containerd.io", "1.7.27-1", conflicts=["containerd"], files=containerd),
        # An image's kernel follows a package without a version in its name.
        Deb("linux-image-cloud-amd64", "6.1.1-1"),
        Deb(
            "ami-tree",
            "1-1",
            files={
                "/usr/local/cuda/bin/nvcc": compiler,
                f"/usr/local/cuda-13.0/lib/libnccl.so.{NCCL}": "stand-in\n",
                "/usr/local/cuda-13.0/include/nccl.h": shelf_gpu.nccl_header(NCCL),
                "/opt/amazon/efa_installed_packages": (
                    f"# EFA installer version: 1.45.0\n# Debug packages installed: no\n# Packages installed:\n{RECORD}\n"
                ),
                "/opt/amazon/efa/bin/fi_info": Executable('#!/bin/sh\necho "fi_getinfo: -61"; exit 61\n'),
                "/opt/amazon/ofi-nccl/lib/libnccl-net-ofi.so": shelf_gpu.ELF_HEADER,
                "/lib/systemd/system/dlami-nvme.service": STORE,
            },
        ),
    ]


def packages(mirror: Mirror) -> None:
    """Offer them one by one, not in a repository: an image brings them, and no role can fetch them."""
    place = mirror.directory / "files" / "ami"
    for deb in debs():
        packed = pack(deb, place)
        packed.rename(place / f"{deb.name}.deb")
